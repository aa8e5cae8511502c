package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	kserve "github.com/kserve/kserve/pkg/scheme"
)

// newScheme knows the kinds of KServe and all that its controller makes.
func newScheme() (*runtime.Scheme, error) {
	known := runtime.NewScheme()
	return known, errors.Join(kserve.AddAll(known), kserve.AddCoreKubernetesAPIs(known))
}

// decode reads objects as strictly as an API server: an unknown field is a verdict.
func decode(known *runtime.Scheme, namespace string, input io.Reader, report *Report) ([]client.Object, error) {
	decoder := serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewYAMLReader(bufio.NewReader(input))
	var objects []client.Object
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if strings.TrimSpace(string(document)) == "" {
			continue
		}
		decoded, version, err := decoder.Decode(document, nil, nil)
		if err != nil {
			kind := fmt.Sprintf("document %d", number)
			report.Verdicts = append(report.Verdicts, Verdict{Kind: kind, Step: "decode", Message: err.Error()})
			continue
		}
		object := decoded.(client.Object)
		object.GetObjectKind().SetGroupVersionKind(*version)
		// The controller makes owners of objects, and refuses those without an identity.
		object.SetUID(types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", number)))
		if object.GetNamespace() == "" && version.Kind != "ClusterServingRuntime" {
			object.SetNamespace(namespace)
		}
		objects = append(objects, object)
	}
}

func kindOf(object client.Object) string {
	if kind := object.GetObjectKind().GroupVersionKind().Kind; kind != "" {
		return kind
	}
	return fmt.Sprintf("%T", object)
}

// named gives an object its kind, which clients take away.
func named(object client.Object, known *runtime.Scheme) client.Object {
	if version, err := apiutil.GVKForObject(object, known); err == nil {
		object.GetObjectKind().SetGroupVersionKind(version)
	}
	return object
}
