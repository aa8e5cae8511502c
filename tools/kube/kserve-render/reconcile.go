package main

import (
	"context"
	"encoding/json"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	netv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	kedav1alpha1 "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	"github.com/kserve/kserve/pkg/apis/serving/v1beta1"
	"github.com/kserve/kserve/pkg/controller/v1beta1/inferenceservice"
	podwebhook "github.com/kserve/kserve/pkg/webhook/admission/pod"
	"knative.dev/pkg/apis"
	knservingv1 "knative.dev/serving/pkg/apis/serving/v1"
	gwapiv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// What a controller makes of a service takes several rounds: some parts need the status of others.
const rounds = 3

// Events of the controller are not read; without room it would wait.
const events = 1000

func (held *cluster) reconcile(ctx context.Context, services []*v1beta1.InferenceService, report *Report) {
	reconciler := &inferenceservice.InferenceServiceReconciler{
		Client:       held.client,
		Clientset:    held.kubernetes,
		ClientConfig: &rest.Config{Host: held.kinds.URL},
		Log:          ctrl.Log,
		Scheme:       held.known,
		Recorder:     record.NewFakeRecorder(events),
	}
	for _, service := range services {
		var err error
		for round := 0; round < rounds && err == nil; round++ {
			_, err = reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(service)})
		}
		report.add(named(service, held.known), "reconcile", nil, err)
	}
}

// collect adds what the controller made, and what the pod webhook makes of its pods.
func (held *cluster) collect(ctx context.Context, report *Report) error {
	for _, list := range []client.ObjectList{
		&v1beta1.InferenceServiceList{}, &appsv1.DeploymentList{}, &corev1.ServiceList{}, &netv1.IngressList{},
		&autoscalingv2.HorizontalPodAutoscalerList{}, &kedav1alpha1.ScaledObjectList{}, &gwapiv1.HTTPRouteList{},
		&knservingv1.ServiceList{},
	} {
		if err := held.client.List(ctx, list); err != nil {
			return err
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			object := named(item.(client.Object), held.known)
			object.SetManagedFields(nil)
			report.Objects = append(report.Objects, object)
			switch object := object.(type) {
			case *knservingv1.Service:
				report.add(object, "validate", nil, faultOf(ctx, object))
			case *appsv1.Deployment:
				return held.addPod(ctx, object, report)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// faultOf is Knative's own webhook.
func faultOf(ctx context.Context, service *knservingv1.Service) error {
	complete := service.DeepCopy()
	complete.SetDefaults(ctx)
	if fault := complete.Validate(apis.WithinCreate(ctx)).Filter(apis.ErrorLevel); fault != nil {
		return fault
	}
	return nil
}

// addPod adds the first pod of a deployment as KServe's webhook changes it: with the storage initializer and the agent.
func (held *cluster) addPod(ctx context.Context, deployment *appsv1.Deployment, report *Report) error {
	template := deployment.Spec.Template.DeepCopy()
	pod := named(&corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}, held.known).(*corev1.Pod)
	pod.Name, pod.Namespace = deployment.Name+"-0", deployment.Namespace
	asked := request(pod)
	mutator := &podwebhook.Mutator{
		Client: held.client, Clientset: held.kubernetes, Decoder: admission.NewDecoder(held.known),
	}
	response := mutator.Handle(ctx, asked)
	if !report.add(pod, "mutate", nil, refusal(response)) {
		return nil
	}
	changes, err := json.Marshal(response.Patches)
	if err != nil {
		return err
	}
	patch, err := jsonpatch.DecodePatch(changes)
	if err != nil {
		return err
	}
	content, err := patch.Apply(asked.Object.Raw)
	if err != nil {
		return err
	}
	report.Objects = append(report.Objects, pod)
	return json.Unmarshal(content, pod)
}
