package penstock
import (
 _ "sigs.k8s.io/controller-runtime"
 _ "sigs.k8s.io/controller-runtime/pkg/envtest"
 _ "k8s.io/api/core/v1"
 _ "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
 _ "k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
 _ "github.com/cert-manager/cert-manager/pkg/server/tls/authority"
 _ "github.com/open-policy-agent/opa/v1/rego"
 _ "github.com/open-policy-agent/opa/v1/tester"
 _ "github.com/onsi/ginkgo/v2"
 _ "github.com/onsi/gomega"
 _ "github.com/spf13/cobra"
 _ "github.com/go-json-experiment/json/v1"
 _ "go.uber.org/goleak"
 _ "sigs.k8s.io/yaml"
 _ "github.com/google/go-cmp/cmp"
)
