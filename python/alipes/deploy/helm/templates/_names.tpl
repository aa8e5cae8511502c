{{- /* Labels by which pods are found. */ -}}
{{- define "alipes.selector" -}}
app.kubernetes.io/name: alipes
app.kubernetes.io/instance: {{ .Values.name }}
{{- end }}

{{- /* All labels. */ -}}
{{- define "alipes.labels" -}}
{{- if .Values.labels -}}
{{ toYaml .Values.labels }}
{{ end -}}
{{ include "alipes.selector" . }}
{{- end }}

{{- /* What decides how many servers there are points here. */ -}}
{{- define "alipes.target" -}}
apiVersion: apps/v1
kind: {{ if .Values.streams }}StatefulSet{{ else }}Deployment{{ end }}
name: {{ .Values.name }}
{{- end }}

{{- define "alipes.ports" -}}
- {name: http, port: {{ .Values.ports.http | int }}, targetPort: http, protocol: TCP}
- {name: grpc, port: {{ .Values.ports.grpc | int }}, targetPort: grpc, protocol: TCP}
- {name: metrics, port: {{ .Values.ports.metrics | int }}, targetPort: metrics, protocol: TCP}
{{- end }}

{{- define "alipes.question" -}}
httpGet:
  path: /v2/health/{{ .state }}
  port: http
  scheme: {{ if .root.Values.tls.secret }}HTTPS{{ else }}HTTP{{ end }}
periodSeconds: {{ .root.Values.probes.periodS | int }}
timeoutSeconds: {{ .root.Values.probes.timeoutS | int }}
failureThreshold: {{ .failures }}
{{- end }}
