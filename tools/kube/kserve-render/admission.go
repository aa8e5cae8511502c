package main

import (
	"context"
	"encoding/json"
	"errors"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/kserve/kserve/pkg/apis/serving/v1alpha1"
	"github.com/kserve/kserve/pkg/apis/serving/v1beta1"
	"github.com/kserve/kserve/pkg/webhook/admission/servingruntime"
)

// admit puts objects through KServe's webhooks for them, into the cluster, and returns the services among those admitted.
func (held *cluster) admit(ctx context.Context, objects []client.Object, report *Report) []*v1beta1.InferenceService {
	var services []*v1beta1.InferenceService
	for _, object := range objects {
		warnings, isAsked, err := held.ask(ctx, object)
		if isAsked && !report.add(object, "admit", warnings, err) {
			continue
		}
		if err := held.client.Create(ctx, object); err != nil {
			report.add(object, "create", nil, err)
			continue
		}
		if service, ok := object.(*v1beta1.InferenceService); ok {
			services = append(services, service)
		}
	}
	return services
}

// ask is false where KServe has no webhook for the kind.
func (held *cluster) ask(ctx context.Context, object client.Object) (admission.Warnings, bool, error) {
	decoder := admission.NewDecoder(held.known)
	var warnings admission.Warnings
	var err error
	switch object := object.(type) {
	case *v1alpha1.ClusterServingRuntime:
		err = refusal((&servingruntime.ClusterServingRuntimeValidator{Client: held.client, Decoder: decoder}).
			Handle(ctx, request(object)))
	case *v1alpha1.ServingRuntime:
		err = refusal((&servingruntime.ServingRuntimeValidator{Client: held.client, Decoder: decoder}).
			Handle(ctx, request(object)))
	case *v1alpha1.TrainedModel:
		warnings, err = (&v1alpha1.TrainedModelValidator{}).ValidateCreate(ctx, object)
	case *v1alpha1.InferenceGraph:
		warnings, err = (&v1alpha1.InferenceGraphValidator{}).ValidateCreate(ctx, object)
	case *v1beta1.InferenceService:
		if err = held.complete(object); err == nil {
			warnings, err = (&v1beta1.InferenceServiceValidator{}).ValidateCreate(ctx, object)
		}
	default:
		return nil, false, nil
	}
	return warnings, true, err
}

// complete fills in KServe's defaults, as its webhook does.
func (held *cluster) complete(service *v1beta1.InferenceService) error {
	services, err := v1beta1.NewInferenceServicesConfig(held.configuration)
	if err != nil {
		return err
	}
	deployment, err := v1beta1.NewDeployConfig(held.configuration)
	if err != nil {
		return err
	}
	security, err := v1beta1.NewSecurityConfig(held.configuration)
	if err != nil {
		return err
	}
	service.DefaultInferenceService(services, deployment, security, nil, nil)
	return nil
}

func request(object client.Object) admission.Request {
	content, _ := json.Marshal(object)
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Operation: admissionv1.Create,
		Namespace: object.GetNamespace(),
		Name:      object.GetName(),
		Object:    runtime.RawExtension{Raw: content},
	}}
}

func refusal(response admission.Response) error {
	switch {
	case response.Allowed:
		return nil
	case response.Result != nil:
		return errors.New(response.Result.Message)
	default:
		return errors.New("refused")
	}
}
