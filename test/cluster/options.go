package cluster

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Components says how much of a cluster to start.
type Components string

const (
	// APIServerOnly starts etcd and kube-apiserver: objects are stored, nothing acts on them. Pods need no service
	// account.
	APIServerOnly Components = "APIServerOnly"
	// Full adds kube-controller-manager, kube-scheduler and the simulated nodes.
	Full Components = "Full"
)

// startTimeout bounds one component's start when the caller's context has no earlier deadline. It is generous: a busy
// CI machine takes several times the usual five seconds.
const startTimeout = 90 * time.Second

// Options describe the cluster to start; the zero value is an API server in a temporary folder.
type Options struct {
	// Components is how much to start; APIServerOnly when empty.
	Components Components
	// Dir is the folder for data, certificates and logs; a temporary one that Stop removes when empty. What an earlier
	// cluster left in it is deleted.
	Dir string
	// Keep leaves a temporary folder in place after Stop.
	Keep bool
	// Nodes are created, and awaited, before Start returns; only with Full.
	Nodes []Node
	// GangScheduling turns on the PodGroup and Workload API (scheduling.k8s.io/v1beta1) with gang and topology-aware
	// scheduling.
	GangScheduling bool
	// FeatureGates are handed to kube-apiserver, kube-controller-manager and kube-scheduler.
	FeatureGates map[string]bool
	// RuntimeConfig turns API versions on or off, for example "scheduling.k8s.io/v1beta1": true.
	RuntimeConfig map[string]bool
	// APIServerVerbosity is kube-apiserver's -v; 0 logs little, 4 and up log every request.
	APIServerVerbosity int
	// APIServerArgs are added to kube-apiserver's command line, and win over what is there.
	APIServerArgs []string
	// Assets are the binaries; found as FindAssets does when zero.
	Assets Assets
	// Log receives one line as each component is ready; nil for silence.
	Log io.Writer
}

func (o Options) withDefaults() (Options, error) {
	if o.Components == "" {
		o.Components = APIServerOnly
	}
	if o.Components != APIServerOnly && o.Components != Full {
		return o, fmt.Errorf("unknown components %q: use APIServerOnly or Full", o.Components)
	}
	if len(o.Nodes) > 0 && o.Components != Full {
		return o, fmt.Errorf("nodes need Components: Full")
	}
	if o.Log == nil {
		o.Log = io.Discard
	}
	if len(o.Assets.dirs) == 0 {
		assets, err := FindAssets()
		if err != nil {
			return o, err
		}
		o.Assets = assets
	}
	if o.Components == Full {
		if err := o.Assets.require("kube-controller-manager", "kube-scheduler", "kwok"); err != nil {
			return o, err
		}
	}
	if o.GangScheduling {
		o.FeatureGates = with(o.FeatureGates, "GenericWorkload", "TopologyAwareWorkloadScheduling")
		o.RuntimeConfig = with(o.RuntimeConfig, "scheduling.k8s.io/v1beta1")
	}
	return o, nil
}

// with returns the settings with the named ones on, leaving the caller's map as it is.
func with(settings map[string]bool, names ...string) map[string]bool {
	all := map[string]bool{}
	for _, name := range names {
		all[name] = true
	}
	maps.Copy(all, settings)
	return all
}

// join writes settings as Kubernetes flags take them: a=true,b=false.
func join(settings map[string]bool) string {
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		pairs = append(pairs, fmt.Sprintf("%s=%t", name, settings[name]))
	}
	return strings.Join(pairs, ",")
}
