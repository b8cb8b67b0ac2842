package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"

	v1 "github.com/penstock-dev/penstock/api/v1"
	"github.com/penstock-dev/penstock/api/v1alpha1"
	"github.com/penstock-dev/penstock/policies"
	"github.com/penstock-dev/penstock/policies/audit"
	"github.com/penstock-dev/penstock/policies/controller"
	"github.com/penstock-dev/penstock/policies/stored"
	"github.com/penstock-dev/penstock/reconcilers"
	"github.com/penstock-dev/penstock/reconcilers/pods"
	"github.com/penstock-dev/penstock/webhooks"
	"github.com/penstock-dev/penstock/webhooks/certs"
)

// leaderElectionID is the name of the lease that only Penstock may use.
const leaderElectionID = "penstock-manager.penstock.dev"

// Certificate sources, as --cert-source names them.
const (
	certSourceSelfManaged = "self-managed"
	certSourceFiles       = "files"
)

// managerOptions are the flags of penstock manager.
type managerOptions struct {
	namespace        string
	webhookHost      string
	webhookPort      int
	certSource       string
	certDir          string
	certSecret       string
	dnsNames         []string
	systemNamespaces []string
	metricsAddress   string
	probeAddress     string
	leaderElection   bool
	shutdownDelay    time.Duration
	policyDeadline   time.Duration
	audit            bool
	auditReports     bool
	decisions        decisionFlags
	concurrentJobs   int
	concurrentRay    int
	reconcilePeriod  time.Duration
	qps              float32
	burst            int
	zap              zap.Options
}

func newManagerCommand() *cobra.Command {
	o := &managerOptions{}
	cmd := &cobra.Command{
		Use:   "manager",
		Short: "Run webhooks and reconcilers",
		Long: `Run Penstock in a cluster: every replica answers admission and conversion
reviews, and the leader reconciles workloads.

It connects to the cluster by --kubeconfig, by KUBECONFIG, or as the pod it is.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *managerOptions) addFlags(flags *pflag.FlagSet) {
	namespace := os.Getenv("POD_NAMESPACE")
	if namespace == "" {
		namespace = "penstock-system"
	}
	flags.StringVar(&o.namespace, "namespace", namespace, "Namespace that Penstock runs in; POD_NAMESPACE when set.")
	flags.StringVar(&o.webhookHost, "webhook-host", "", "Address to serve webhooks on; all when empty.")
	flags.IntVar(&o.webhookPort, "webhook-port", 9443, "Port to serve webhooks on.")
	flags.StringVar(&o.certSource, "cert-source", certSourceSelfManaged, "Where the serving certificate comes from: self-managed, or files.")
	flags.StringVar(&o.certDir, "cert-dir", "/etc/penstock/certs", "Directory of tls.crt and tls.key, for --cert-source=files.")
	flags.StringVar(&o.certSecret, "cert-secret", "penstock-webhook-ca", "Secret of the authority, for --cert-source=self-managed.")
	flags.StringSliceVar(&o.dnsNames, "webhook-dns-names", nil, "Names that the API server calls the webhooks by, for --cert-source=self-managed; those of the Service penstock-webhook when empty.")
	flags.StringSliceVar(&o.systemNamespaces, "system-namespaces", nil, "Namespaces of what the cluster needs to start (network, DNS, storage, certificates), which are never asked about for kinds outside penstock.dev, no more than kube-system and Penstock's own.")
	flags.StringVar(&o.metricsAddress, "metrics-bind-address", ":8080", "Address to serve metrics on; 0 for none.")
	flags.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "Address to serve /healthz and /readyz on.")
	flags.BoolVar(&o.leaderElection, "leader-elect", true, "Let one replica reconcile only.")
	flags.DurationVar(&o.shutdownDelay, "shutdown-delay", 5*time.Second, "How long to go on serving after the signal to stop, until no more calls come.")
	flags.DurationVar(&o.policyDeadline, "policy-deadline", 500*time.Millisecond, "How long one policy may take for one request.")
	flags.BoolVar(&o.audit, "audit", true, "Judge stored objects too, and write the results into the status of policies; only the leader does.")
	flags.BoolVar(&o.auditReports, "audit-reports", true, "Write reports on objects that break policies, where the cluster serves openreports.io or wgpolicyk8s.io.")
	o.decisions.add(flags)
	flags.IntVar(&o.concurrentJobs, "concurrent-trainingjobs", 4, "How many training jobs are reconciled at once.")
	flags.IntVar(&o.concurrentRay, "concurrent-rayclusters", 4, "How many Ray clusters are reconciled at once.")
	flags.DurationVar(&o.reconcilePeriod, "reconcile-period", 5*time.Minute, "How often each workload is looked at without an event.")
	flags.Float32Var(&o.qps, "kube-api-qps", 500, "How many requests a second may go to the API server; it has its own fairness.")
	flags.IntVar(&o.burst, "kube-api-burst", 500, "How many requests may go to the API server at once.")
	fromGo := flag.NewFlagSet("", flag.ContinueOnError)
	o.zap.BindFlags(fromGo)
	ctrl.RegisterFlags(fromGo)
	flags.AddGoFlagSet(fromGo)
}

func (o *managerOptions) run(ctx context.Context) error {
	relaxCollector()
	ctrl.SetLogger(zap.New(zap.UseFlagOptions(&o.zap)))
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("failed to find the cluster: %w", err)
	}
	config.QPS, config.Burst = o.qps, o.burst
	scheme, err := newScheme()
	if err != nil {
		return err
	}
	source, err := o.newSource(config)
	if err != nil {
		return err
	}
	jobs, clusters := trainingJobs(), rayClusters()
	mgr, err := ctrl.NewManager(config, o.forManager(scheme, o.cacheOptions(pods.Lean, slices.Concat(jobs.Owns, clusters.Owns)), source))
	if err != nil {
		return fmt.Errorf("failed to make the manager: %w", err)
	}
	if err := o.setupCertificates(mgr, source); err != nil {
		return err
	}
	loaded, err := o.setupGate(mgr)
	if err != nil {
		return err
	}
	err = errors.Join(
		reconcilers.Setup(mgr, jobs, reconcilers.Options{MaxConcurrentReconciles: o.concurrentJobs, Period: o.reconcilePeriod}),
		reconcilers.Setup(mgr, clusters, reconcilers.Options{MaxConcurrentReconciles: o.concurrentRay, Period: o.reconcilePeriod}),
	)
	if err != nil {
		return err
	}
	return o.serve(ctx, mgr, source, loaded)
}

func (o *managerOptions) forManager(scheme *runtime.Scheme, cached map[client.Object]cache.ByObject, source certs.Source) ctrl.Options {
	return ctrl.Options{
		Scheme:                        scheme,
		Cache:                         cache.Options{ByObject: cached, DefaultTransform: cache.TransformStripManagedFields()},
		LeaderElection:                o.leaderElection,
		LeaderElectionID:              leaderElectionID,
		LeaderElectionNamespace:       o.namespace,
		LeaderElectionReleaseOnCancel: true,
		HealthProbeBindAddress:        o.probeAddress,
		Metrics:                       metricsserver.Options{BindAddress: o.metricsAddress},
		WebhookServer: webhook.NewServer(webhook.Options{
			Host: o.webhookHost,
			Port: o.webhookPort,
			TLSOpts: []func(*tls.Config){func(config *tls.Config) {
				config.MinVersion = tls.VersionTLS12
				config.GetCertificate = source.GetCertificate
			}},
		}),
	}
}

// secret holds the authority of the self-managed source.
func (o *managerOptions) secret() types.NamespacedName {
	return types.NamespacedName{Namespace: o.namespace, Name: o.certSecret}
}

// newSource gives the certificate source that the flags name.
func (o *managerOptions) newSource(config *rest.Config) (certs.Source, error) {
	switch o.certSource {
	case certSourceSelfManaged:
		return certs.NewSelfManaged(certs.SelfManagedOptions{
			Config: config, Namespace: o.namespace, Name: o.certSecret, DNSNames: o.webhookNames(),
		}), nil
	case certSourceFiles:
		return certs.Files(o.certDir+"/tls.crt", o.certDir+"/tls.key"), nil
	default:
		return nil, fmt.Errorf("--cert-source must be %s or %s, not %q", certSourceSelfManaged, certSourceFiles, o.certSource)
	}
}

// setupCertificates runs the source, and for a self-managed one what makes
// callers trust it.
func (o *managerOptions) setupCertificates(mgr ctrl.Manager, source certs.Source) error {
	if err := mgr.Add(source); err != nil {
		return fmt.Errorf("failed to add the certificate source: %w", err)
	}
	selfManaged, ok := source.(*certs.SelfManaged)
	if !ok {
		return nil
	}
	if err := certs.SetupInjector(mgr, o.secret(), selfManaged); err != nil {
		return fmt.Errorf("failed to set up the CA injector: %w", err)
	}
	return nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(
		clientgoscheme.AddToScheme(scheme),
		apiextensionsv1.AddToScheme(scheme),
		v1.AddToScheme(scheme),
		v1alpha1.AddToScheme(scheme),
	)
	if err != nil {
		return nil, fmt.Errorf("failed to make the scheme: %w", err)
	}
	return scheme, nil
}

func (o *managerOptions) webhookNames() []string {
	if len(o.dnsNames) > 0 {
		return o.dnsNames
	}
	service := "penstock-webhook." + o.namespace
	return []string{service + ".svc", service + ".svc.cluster.local", service}
}

// setupGate sets up policies and webhooks.
func (o *managerOptions) setupGate(mgr ctrl.Manager) (*controller.Loader, error) {
	webhooks.RegisterMetrics()
	engine := policies.NewEngine(policies.Options{Deadline: o.policyDeadline, Observer: webhooks.PolicyMetrics{}})
	rules := controller.RulesOptions{
		Namespace: o.namespace, SystemNamespaces: o.systemNamespaces, JudgePath: webhooks.JudgePath, ProbePath: webhooks.ProbePath,
	}
	kinds, err := controller.NewServedKinds(mgr)
	if err != nil {
		return nil, err
	}
	cluster := webhooks.LiveCluster{Cached: mgr.GetClient(), Live: mgr.GetAPIReader(), Mapper: mgr.GetRESTMapper()}
	decisions, err := o.decisions.setup(mgr)
	if err != nil {
		return nil, err
	}
	judge := &stored.Judge{Reach: rules.Reach(), Labels: cluster.NamespaceLabels, Clock: time.Now}
	auditor, err := o.setupAudit(mgr, audit.Options{Engine: engine, Mapper: kinds, Judge: judge, NoReports: !o.auditReports})
	if err != nil {
		return nil, err
	}
	loader, err := controller.Setup(mgr, controller.Options{Engine: engine, Kinds: kinds, Rules: rules, Audit: auditor})
	if err != nil {
		return nil, err
	}
	gate, err := webhooks.NewGate(webhooks.GateOptions{
		Engine:  engine,
		Cluster: cluster,
		Clock:   time.Now,
		Loaded:  loader.Loaded,
		Kinds:   kinds,
		Authors: &controller.Authors{Reviews: mgr.GetClient(), Mapper: kinds},
		Preview: controller.NewPreview(controller.Preview{
			Live: mgr.GetAPIReader(), Cached: mgr.GetClient(), Reviews: mgr.GetClient(), Mapper: kinds, Judge: judge, Engine: engine, Deadline: o.policyDeadline,
		}),

		Reach:            rules.Reach(),
		Authorizer:       webhooks.AccessReviews(mgr.GetClient()),
		Decisions:        decisions,
		SystemNamespaces: o.systemNamespaces,
	})
	if err != nil {
		return nil, fmt.Errorf("failed to make the gate: %w", err)
	}
	judge.Normal = gate.Normal
	webhooks.Setup(mgr.GetWebhookServer(), gate, mgr.GetLogger().WithName("webhooks"))
	return loader, nil
}

// setupAudit sets up the audit; it is nil where nothing is to be audited.
func (o *managerOptions) setupAudit(mgr ctrl.Manager, options audit.Options) (controller.Audit, error) {
	if !o.audit {
		return nil, nil
	}
	auditor, err := audit.Setup(mgr, options)
	if err != nil {
		return nil, fmt.Errorf("failed to set up the audit: %w", err)
	}
	return auditor, nil
}

// serve runs the manager until the signal to stop, and on for the shutdown
// delay: readiness is withdrawn first, so that calls stop coming before the
// port closes.
func (o *managerOptions) serve(ctx context.Context, mgr ctrl.Manager, source certs.Source, loader *controller.Loader) error {
	var stopping atomic.Bool
	checks := map[string]func(*http.Request) error{
		"webhooks":     mgr.GetWebhookServer().StartedChecker(),
		"policies":     loader.Check,
		"inventory":    loader.Inventory().Check,
		"certificates": func(*http.Request) error { return orError(source.Healthy(), "there is no serving certificate yet") },
		"ca-bundle": func(*http.Request) error {
			return orError(source.Accepted(), "the CA bundle is not written everywhere yet")
		},
		"stopping": func(*http.Request) error { return orError(!stopping.Load(), "the process is stopping") },
	}
	for name, check := range checks {
		if err := mgr.AddReadyzCheck(name, check); err != nil {
			return fmt.Errorf("failed to add the readiness check %s: %w", name, err)
		}
	}
	if err := mgr.AddHealthzCheck("ping", func(*http.Request) error { return nil }); err != nil {
		return fmt.Errorf("failed to add the health check: %w", err)
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	go func() {
		select {
		case <-running.Done():
			return
		case <-ctx.Done():
		}
		stopping.Store(true)
		mgr.GetLogger().Info("Stopping", "delay", o.shutdownDelay)
		select {
		case <-running.Done():
		case <-time.After(o.shutdownDelay):
		}
		stop()
	}()
	if err := mgr.Start(running); err != nil {
		return fmt.Errorf("failed to run the manager: %w", err)
	}
	return nil
}

func orError(ok bool, message string) error {
	if ok {
		return nil
	}
	return errors.New(message)
}
