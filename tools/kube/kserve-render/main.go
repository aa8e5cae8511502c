// Command kserve-render asks KServe's own code about objects of KServe: would its API server's webhooks admit them, and
// what would its controller make of them? It reads YAML from standard input, needs no API server, and writes a list in
// JSON, with a report for each cluster: a verdict for each step of each object, and the objects that the controller and
// the pod webhook made. A line of three equals signs begins the objects of another cluster.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/yaml"
)

// Verdict is the outcome of one step for one object.
type Verdict struct {
	Kind     string   `json:"kind"`
	Name     string   `json:"name"`
	Step     string   `json:"step"`
	Accepted bool     `json:"accepted"`
	Message  string   `json:"message,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// boundary stands between the objects of two clusters.
const boundary = "\n===\n"

// Report is what is written of a cluster.
type Report struct {
	Verdicts []Verdict       `json:"verdicts"`
	Objects  []client.Object `json:"objects"`
}

func (report *Report) add(object client.Object, step string, warnings []string, err error) bool {
	verdict := Verdict{Kind: kindOf(object), Name: object.GetName(), Step: step, Accepted: err == nil, Warnings: warnings}
	if err != nil {
		verdict.Message = err.Error()
	}
	report.Verdicts = append(report.Verdicts, verdict)
	return err == nil
}

func main() {
	settings := flag.String("config", "", "the ConfigMap inferenceservice-config, in YAML")
	namespace := flag.String("namespace", "default", "the namespace of objects that name none")
	flag.Parse()
	ctrl.SetLogger(zap.New(zap.WriteTo(io.Discard)))
	reports, err := renderAll(context.Background(), *settings, *namespace, os.Stdin)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(reports)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kserve-render:", err)
		os.Exit(1)
	}
}

func renderAll(ctx context.Context, settings, namespace string, input io.Reader) ([]*Report, error) {
	content, err := os.ReadFile(settings)
	if err != nil {
		return nil, err
	}
	configuration := &corev1.ConfigMap{}
	if err := yaml.Unmarshal(content, configuration); err != nil {
		return nil, err
	}
	documents, err := io.ReadAll(input)
	if err != nil {
		return nil, err
	}
	var reports []*Report
	for _, objects := range strings.Split(string(documents), boundary) {
		report, err := render(ctx, configuration.DeepCopy(), namespace, strings.NewReader(objects))
		if err != nil {
			return nil, err
		}
		reports = append(reports, report)
	}
	return reports, nil
}

func render(
	ctx context.Context, configuration *corev1.ConfigMap, namespace string, input io.Reader,
) (*Report, error) {
	known, err := newScheme()
	if err != nil {
		return nil, err
	}
	report := &Report{Verdicts: []Verdict{}, Objects: []client.Object{}}
	objects, err := decode(known, namespace, input, report)
	if err != nil {
		return nil, err
	}
	held := newCluster(known, namespace, configuration, objects)
	defer held.close()
	held.reconcile(ctx, held.admit(ctx, objects, report), report)
	return report, held.collect(ctx, report)
}
