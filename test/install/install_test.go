package install_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/penstock-dev/penstock/test/cluster"
	"github.com/penstock-dev/penstock/test/install"
)

// What is installed serves: with the shipped roles, the manager becomes ready, policies are accepted, the samples are
// judged, and installing again disturbs nothing.
func TestInstall(t *testing.T) {
	c := cluster.ForTest(t, cluster.Options{})
	ctx := t.Context()
	root, binary := moduleRoot(t), build(t)
	port, err := cluster.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	options := install.Options{Port: port}
	if err := install.Apply(ctx, c.Config, options); err != nil {
		t.Fatal(err)
	}
	manager, err := install.Manager(ctx, c, binary, options)
	if err != nil {
		t.Fatal(err)
	}
	if err := install.Policies(ctx, c.Config); err != nil {
		t.Fatal(err)
	}
	if err := install.Apply(ctx, c.Config, options); err != nil {
		t.Fatalf("cannot be installed again: %v", err)
	}

	samples, err := filepath.Glob(root + "/config/samples/*.yaml")
	if err != nil || len(samples) == 0 {
		t.Fatalf("found no samples: %v", err)
	}
	for _, sample := range samples {
		_, stderr, err := c.Kubectl(ctx, "", "apply", "-f", sample)
		refused := strings.HasPrefix(filepath.Base(sample), "refused-")
		switch {
		case !refused && err != nil:
			t.Errorf("%s is refused: %v", filepath.Base(sample), err)
		case refused && err == nil:
			t.Errorf("%s is accepted", filepath.Base(sample))
		case refused && !strings.Contains(stderr, "is invalid"):
			t.Errorf("%s fails for a reason of its own: %s", filepath.Base(sample), stderr)
		}
	}
	manager.Stop()
	select {
	case <-manager.Ended():
	default:
		t.Error("the manager is still there after Stop")
	}
}

// The binary knows the flags that the Deployments hand it.
func TestDeploymentsSpeakTheManagersFlags(t *testing.T) {
	cluster.SkipWithoutAssets(t)
	assets, err := cluster.FindAssets()
	if err != nil {
		t.Fatal(err)
	}
	kubectl, err := assets.Path("kubectl")
	if err != nil {
		t.Fatal(err)
	}
	root, binary := moduleRoot(t), build(t)
	for _, name := range []string{"selfmanaged", "default"} {
		text, err := exec.CommandContext(t.Context(), kubectl, "kustomize", root+"/config/"+name).Output()
		if err != nil {
			t.Fatal(err)
		}
		deployment := &appsv1.Deployment{}
		for object := range strings.SplitSeq(string(text), "\n---\n") {
			if strings.Contains(object, "\nkind: Deployment\n") {
				if err := yaml.UnmarshalStrict([]byte(object), deployment); err != nil {
					t.Fatal(err)
				}
			}
		}
		if len(deployment.Spec.Template.Spec.Containers) != 1 {
			t.Fatalf("%s has no Deployment of one container", name)
		}
		// Flags are read before help is printed.
		args := append(deployment.Spec.Template.Spec.Containers[0].Args, "--help")
		if out, err := exec.CommandContext(t.Context(), binary, args...).CombinedOutput(); err != nil {
			t.Errorf("%s: penstock %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
	}
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	root, err := cluster.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// build builds the manager.
func build(t *testing.T) string {
	t.Helper()
	binary, err := install.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

// Every object that the kustomizations make is one that an API server takes.
func TestKustomizationsAreAccepted(t *testing.T) {
	c := cluster.ForTest(t, cluster.Options{})
	root := moduleRoot(t)
	if _, _, err := c.Kubectl(t.Context(), "", "apply", "--validate=strict", "-k", root+"/config/selfmanaged"); err != nil {
		t.Fatal(err)
	}
	// cert-manager is not there, so what is its own is left out.
	text, _, err := c.Kubectl(t.Context(), "", "kustomize", root+"/config/default")
	if err != nil {
		t.Fatal(err)
	}
	var objects []string
	certificates, annotated := 0, 0
	for object := range strings.SplitSeq(text, "\n---\n") {
		if strings.HasPrefix(object, "apiVersion: cert-manager.io/") {
			certificates++
			continue
		}
		annotated += strings.Count(object, "cert-manager.io/inject-ca-from: penstock-system/penstock-webhook")
		objects = append(objects, object)
	}
	// Two webhook configurations, and two kinds that are converted.
	if certificates != 4 || annotated != 4 {
		t.Errorf("got %d certificates and issuers, want 4; %d objects with an injected CA, want 4", certificates, annotated)
	}
	if _, _, err := c.Kubectl(t.Context(), strings.Join(objects, "\n---\n"), "apply", "--validate=strict", "-f", "-"); err != nil {
		t.Error(err)
	}
}
