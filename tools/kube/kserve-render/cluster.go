package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	fakekubernetes "k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/kserve/kserve/pkg/apis/serving/v1beta1"
)

// A controller does without a kind that a cluster lacks: this one has all of them.
var offered = []string{
	"ClusterServingRuntime", "HTTPRoute", "OpenTelemetryCollector", "ScaledObject", "Service", "VirtualService",
}

// cluster is what KServe's code asks: its clients, with objects in memory, and an address that lists kinds.
type cluster struct {
	known         *runtime.Scheme
	configuration *corev1.ConfigMap
	client        client.Client
	kubernetes    kubernetes.Interface
	kinds         *httptest.Server
}

func newCluster(
	known *runtime.Scheme, namespace string, configuration *corev1.ConfigMap, objects []client.Object,
) *cluster {
	scaling := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "config-autoscaler", Namespace: "knative-serving"}}
	place := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	plain := []runtime.Object{configuration, scaling, place}
	for _, object := range objects {
		switch object.(type) {
		case *corev1.Secret, *corev1.ServiceAccount, *corev1.ConfigMap:
			plain = append(plain, object)
		}
	}
	inMemory := fake.NewClientBuilder().WithScheme(known).
		WithStatusSubresource(&v1beta1.InferenceService{}, &appsv1.Deployment{}).
		WithObjects(configuration, place).Build()
	clients := fakekubernetes.NewSimpleClientset(plain...)
	// Of ConfigMaps, this client sees those that were made by the other.
	clients.PrependReactor("get", "configmaps", func(action testing.Action) (bool, runtime.Object, error) {
		name := types.NamespacedName{Namespace: action.GetNamespace(), Name: action.(testing.GetAction).GetName()}
		found := &corev1.ConfigMap{}
		err := inMemory.Get(context.Background(), name, found)
		return err == nil, found, nil
	})
	return &cluster{
		known:         known,
		configuration: configuration,
		client:        inMemory,
		kubernetes:    clients,
		kinds:         httptest.NewServer(http.HandlerFunc(listKinds)),
	}
}

func (held *cluster) close() { held.kinds.Close() }

func listKinds(writer http.ResponseWriter, request *http.Request) {
	version := strings.TrimPrefix(request.URL.Path, "/apis/")
	list := metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: version,
	}
	for _, kind := range offered {
		resource := metav1.APIResource{Name: strings.ToLower(kind) + "s", Kind: kind, Namespaced: true}
		list.APIResources = append(list.APIResources, resource)
	}
	writer.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(writer).Encode(list)
}
