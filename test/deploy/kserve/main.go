// KServe's own code without a cluster, for kserve.test.ts; KServe.ts compiles it. It takes documents as KServe's
// webhooks do, lets KServe's controller act on each InferenceService, and prints the objects of that, with a pod as the
// webhook for pods changes it, as a list in JSON. A document that KServe refuses ends it with an error.
//
// usage: kserve MODULE, the folder of KServe's module; documents of YAML on the standard input
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	documents "k8s.io/apimachinery/pkg/util/yaml"
	clientset "k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	keda "github.com/kedacore/keda/v2/apis/keda/v1alpha1"
	"github.com/kserve/kserve/pkg/apis/serving/v1alpha1"
	"github.com/kserve/kserve/pkg/apis/serving/v1beta1"
	"github.com/kserve/kserve/pkg/constants"
	"github.com/kserve/kserve/pkg/controller/v1beta1/inferenceservice/components"
	"github.com/kserve/kserve/pkg/scheme"
	"github.com/kserve/kserve/pkg/webhook/admission/pod"
	"github.com/kserve/kserve/pkg/webhook/admission/servingruntime"
)

const namespace = "default"

// A cluster in memory, in which KServe is installed with the files of its module.
type cluster struct {
	scheme    *runtime.Scheme
	client    client.Client
	clientset *clientset.Clientset
	config    corev1.ConfigMap
}

func main() {
	if len(os.Args) != 2 || os.Args[1] == "--help" {
		fmt.Println("usage: kserve MODULE < DOCUMENTS")
		return
	}
	if err := run(context.Background(), os.Args[1], os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, module string, input io.Reader) error {
	c, err := install(ctx, filepath.Join(module, "config"))
	if err != nil {
		return err
	}
	items := []client.Object{}
	for reader := documents.NewYAMLReader(bufio.NewReader(input)); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		made, err := c.apply(ctx, document)
		if err != nil {
			return err
		}
		items = append(items, made...)
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
}

func install(ctx context.Context, config string) (*cluster, error) {
	c := &cluster{scheme: runtime.NewScheme()}
	if err := scheme.AddAll(c.scheme); err != nil {
		return nil, err
	}
	c.client = fake.NewClientBuilder().WithScheme(c.scheme).Build()
	if err := read(filepath.Join(config, "configmap/inferenceservice.yaml"), &c.config); err != nil {
		return nil, err
	}
	c.clientset = clientset.NewClientset(&c.config)
	files, err := filepath.Glob(filepath.Join(config, "runtimes/kserve-*.yaml"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		var serving v1alpha1.ClusterServingRuntime
		if err := errors.Join(read(file, &serving), c.client.Create(ctx, &serving)); err != nil {
			return nil, err
		}
	}
	var storage v1alpha1.ClusterStorageContainer
	err = read(filepath.Join(config, "storagecontainers/default.yaml"), &storage)
	return c, errors.Join(err, c.client.Create(ctx, &storage))
}

func read(file string, object any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	return yaml.UnmarshalStrict(text, object)
}

func (c *cluster) apply(ctx context.Context, document []byte) ([]client.Object, error) {
	var kind struct{ Kind string }
	if err := yaml.Unmarshal(document, &kind); err != nil {
		return nil, err
	}
	switch kind.Kind {
	case "ClusterServingRuntime":
		var serving v1alpha1.ClusterServingRuntime
		if err := yaml.UnmarshalStrict(document, &serving); err != nil {
			return nil, err
		}
		validator := servingruntime.ClusterServingRuntimeValidator{
			Client: c.client, Decoder: admission.NewDecoder(c.scheme),
		}
		if response := validator.Handle(ctx, request(&serving)); !response.Allowed {
			return nil, errors.New(response.Result.Message)
		}
		return nil, errors.Join(serving.Spec.ValidateCreate(), c.client.Create(ctx, &serving))
	case "InferenceService":
		var service v1beta1.InferenceService
		if err := yaml.UnmarshalStrict(document, &service); err != nil {
			return nil, err
		}
		service.Namespace = namespace
		return c.serve(ctx, &service)
	}
	return nil, fmt.Errorf("not known here: %s", kind.Kind)
}

func request(object client.Object) admission.Request {
	raw, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{
		Namespace: namespace, Object: runtime.RawExtension{Raw: raw},
	}}
}

// Completes and validates an InferenceService, and lets the controller act on its predictor.
func (c *cluster) serve(ctx context.Context, service *v1beta1.InferenceService) ([]client.Object, error) {
	config, err := v1beta1.NewInferenceServicesConfig(&c.config)
	if err != nil {
		return nil, err
	}
	deploy, err := v1beta1.NewDeployConfig(&c.config)
	if err != nil {
		return nil, err
	}
	service.DefaultInferenceService(config, deploy, nil, nil)
	warnings, err := (&v1beta1.InferenceServiceValidator{}).ValidateCreate(ctx, service)
	if err != nil {
		return nil, err
	}
	if len(warnings) > 0 {
		return nil, fmt.Errorf("warnings: %v", warnings)
	}
	if err := c.client.Create(ctx, service); err != nil {
		return nil, err
	}
	mode := constants.ParseDeploymentMode(service.Annotations[constants.DeploymentMode])
	predictor := components.NewPredictor(c.client, c.clientset, c.scheme, config, mode)
	if _, err := predictor.Reconcile(ctx, service); err != nil {
		return nil, err
	}
	return c.made(ctx)
}

// The objects of the controller, and a pod.
func (c *cluster) made(ctx context.Context) ([]client.Object, error) {
	var deployments appsv1.DeploymentList
	var services corev1.ServiceList
	var scalers keda.ScaledObjectList
	err := errors.Join(c.client.List(ctx, &deployments), c.client.List(ctx, &services), c.client.List(ctx, &scalers))
	if err != nil {
		return nil, err
	}
	var objects []client.Object
	for i := range deployments.Items {
		deployment := &deployments.Items[i]
		created, err := c.pod(ctx, deployment)
		if err != nil {
			return nil, err
		}
		objects = append(objects, deployment, created)
	}
	for i := range services.Items {
		objects = append(objects, &services.Items[i])
	}
	for i := range scalers.Items {
		objects = append(objects, &scalers.Items[i])
	}
	for _, object := range objects {
		kind, err := apiutil.GVKForObject(object, c.scheme)
		if err != nil {
			return nil, err
		}
		object.GetObjectKind().SetGroupVersionKind(kind)
		// Of the client in memory.
		object.SetResourceVersion("")
		object.SetOwnerReferences(nil)
	}
	return objects, nil
}

// The pod of a Deployment, as the webhook for pods changes it.
func (c *cluster) pod(ctx context.Context, deployment *appsv1.Deployment) (*corev1.Pod, error) {
	template := deployment.Spec.Template
	before := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	before.Name, before.Namespace = deployment.Name, ""
	mutator := pod.Mutator{Client: c.client, Clientset: c.clientset, Decoder: admission.NewDecoder(c.scheme)}
	asked := request(before)
	response := mutator.Handle(ctx, asked)
	if !response.Allowed {
		return nil, errors.New(response.Result.Message)
	}
	if len(response.Patches) == 0 {
		return nil, errors.New("the webhook for pods has not changed the pod")
	}
	text, err := json.Marshal(response.Patches)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		return nil, err
	}
	changed, err := patch.Apply(asked.Object.Raw)
	if err != nil {
		return nil, err
	}
	after := &corev1.Pod{}
	return after, json.Unmarshal(changed, after)
}
