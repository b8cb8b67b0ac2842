package validation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// probes judges what a container is asked and told while it runs.
func (c *containerJudge) probes(container *corev1.Container, path *field.Path) {
	c.probe(container.LivenessProbe, path.Child("livenessProbe"), true)
	c.probe(container.StartupProbe, path.Child("startupProbe"), true)
	c.probe(container.ReadinessProbe, path.Child("readinessProbe"), false)
	if lifecycle := container.Lifecycle; lifecycle != nil {
		c.hook(lifecycle.PostStart, path.Child("lifecycle", "postStart"))
		c.hook(lifecycle.PreStop, path.Child("lifecycle", "preStop"))
	}
}

func (c *containerJudge) probe(probe *corev1.Probe, path *field.Path, restarts bool) {
	if probe == nil {
		return
	}
	c.handler(handler{exec: probe.Exec, http: probe.HTTPGet, tcp: probe.TCPSocket, grpc: probe.GRPC}, path, "exec, httpGet, tcpSocket or grpc")
	for _, number := range []struct {
		name  string
		value int32
	}{
		{"initialDelaySeconds", probe.InitialDelaySeconds}, {"timeoutSeconds", probe.TimeoutSeconds}, {"periodSeconds", probe.PeriodSeconds},
		{"successThreshold", probe.SuccessThreshold}, {"failureThreshold", probe.FailureThreshold},
	} {
		c.atLeast(path.Child(number.name), int64(number.value), 0, "give a number from 1, or leave it out")
	}
	if restarts && probe.SuccessThreshold > 1 {
		c.invalid(path.Child("successThreshold"), probe.SuccessThreshold, "must be 1 for a probe that restarts the container: leave it out")
	}
	switch seconds := probe.TerminationGracePeriodSeconds; {
	case seconds == nil:
	case !restarts:
		c.invalid(path.Child("terminationGracePeriodSeconds"), *seconds, "is not for a readinessProbe, which stops nothing: remove it")
	default:
		c.atLeast(path.Child("terminationGracePeriodSeconds"), *seconds, 1, "give how many seconds the container has to stop, or leave it out")
	}
}

func (c *containerJudge) hook(hook *corev1.LifecycleHandler, path *field.Path) {
	if hook == nil {
		return
	}
	c.handler(handler{exec: hook.Exec, http: hook.HTTPGet, tcp: hook.TCPSocket, sleep: hook.Sleep}, path, "exec, httpGet or sleep")
	if hook.Sleep == nil {
		return
	}
	grace := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if c.pod.TerminationGracePeriodSeconds != nil {
		grace = *c.pod.TerminationGracePeriodSeconds
	}
	if grace < 0 {
		// The API server reads what is negative as 1.
		grace = 1
	}
	if seconds := hook.Sleep.Seconds; seconds < 0 || seconds > grace {
		c.invalid(path.Child("sleep"), seconds, fmt.Sprintf("must be from 0 to terminationGracePeriodSeconds, which is %d: change one of them", grace))
	}
}

// handler is what a probe or a hook does.
type handler struct {
	exec  *corev1.ExecAction
	http  *corev1.HTTPGetAction
	tcp   *corev1.TCPSocketAction
	grpc  *corev1.GRPCAction
	sleep *corev1.SleepAction
}

func (c *containerJudge) handler(h handler, path *field.Path, choices string) {
	c.exactlyOne(path, "say what to do: write one of "+choices, members(member{"exec", h.exec != nil}, member{"httpGet", h.http != nil},
		member{"tcpSocket", h.tcp != nil}, member{"grpc", h.grpc != nil}, member{"sleep", h.sleep != nil}))
	if h.exec != nil && len(h.exec.Command) == 0 {
		c.required(path.Child("exec", "command"), "give the command to run")
	}
	if h.http != nil {
		c.port(h.http.Port, path.Child("httpGet", "port"))
		oneOf(c.findings, path.Child("httpGet", "scheme"), h.http.Scheme, corev1.URISchemeHTTP, corev1.URISchemeHTTPS)
		for _, header := range h.http.HTTPHeaders {
			if len(validation.IsHTTPHeaderName(header.Name)) > 0 {
				c.invalid(path.Child("httpGet", "httpHeaders"), header.Name, "must be the name of a header: write it as X-Check")
			}
		}
	}
	if h.tcp != nil {
		c.port(h.tcp.Port, path.Child("tcpSocket", "port"))
	}
	if h.grpc != nil {
		c.port(intstr.FromInt32(h.grpc.Port), path.Child("grpc", "port"))
	}
}

func (c *containerJudge) port(port intstr.IntOrString, path *field.Path) {
	if port.Type == intstr.Int && len(validation.IsValidPortNum(port.IntValue())) > 0 {
		c.invalid(path, port.IntValue(), "must be a number from 1 to 65535, or the name of a port: give the port that the container listens at")
	}
	if port.Type == intstr.String && len(validation.IsValidPortName(port.StrVal)) > 0 {
		c.invalid(path, port.StrVal, "must be a number from 1 to 65535 without quotes, or the name of a port: give the port that the container listens at")
	}
}
