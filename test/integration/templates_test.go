package integration

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// brokenTemplate is a pod template with one fault that the API server refuses
// the pod for.
type brokenTemplate struct {
	name string
	// pod is what is in the template's spec beside a good container; container
	// what is in that; metadata is the template's.
	pod, container, metadata string
	// field is where Penstock says so, below the template. The API server names
	// the same field or one above or below it, unless other says which it names.
	field, other string
	// alpha is what a request in v1alpha1 is told, where no schema speaks first.
	alpha string
}

var brokenTemplates = []brokenTemplate{
	{name: "a label key", metadata: `labels: {"a b": c}`, field: "metadata.labels[a b]"},
	{name: "a label value", metadata: `labels: {a: "b c"}`, field: "metadata.labels[a]"},
	{name: "an annotation key", metadata: `annotations: {"a b": c}`, field: "metadata.annotations[a b]"},
	{name: "a deletion cost", metadata: `annotations: {controller.kubernetes.io/pod-deletion-cost: much}`, field: "metadata.annotations[controller.kubernetes.io/pod-deletion-cost]"},
	{name: "hostname", pod: `hostname: The_Host`, field: "spec.hostname"},
	{name: "subdomain", pod: `subdomain: a.b`, field: "spec.subdomain"},
	{name: "hostnameOverride", pod: `hostnameOverride: A_B`, field: "spec.hostnameOverride"},
	{name: "activeDeadlineSeconds", pod: `activeDeadlineSeconds: -1`, field: "spec.activeDeadlineSeconds"},
	{name: "activeDeadlineSeconds of none", pod: `activeDeadlineSeconds: 0`, field: "spec.activeDeadlineSeconds"},
	{name: "restartPolicy", pod: `restartPolicy: Sometimes`, field: "spec.restartPolicy"},
	{name: "dnsPolicy", pod: `dnsPolicy: Cluster`, field: "spec.dnsPolicy"},
	{name: "dnsPolicy None", pod: `dnsPolicy: None`, field: "spec.dnsConfig.nameservers"},
	{name: "a nameserver", pod: `dnsConfig: {nameservers: [dns]}`, field: "spec.dnsConfig.nameservers[0]"},
	{name: "nameservers", pod: `dnsConfig: {nameservers: [1.1.1.1, 1.1.1.2, 1.1.1.3, 1.1.1.4]}`, field: "spec.dnsConfig.nameservers"},
	{name: "a search domain", pod: `dnsConfig: {searches: [a b]}`, field: "spec.dnsConfig.searches[0]"},
	{name: "a resolver option", pod: `dnsConfig: {options: [{value: a}]}`, field: "spec.dnsConfig.options[0]"},
	{name: "a host alias", pod: `hostAliases: [{ip: host, hostnames: [a]}]`, field: "spec.hostAliases[0].ip"},
	{name: "a host alias name", pod: `hostAliases: [{ip: 10.0.0.1, hostnames: [a_b]}]`, field: "spec.hostAliases[0].hostnames[0]"},
	{name: "a node selector", pod: `nodeSelector: {"a b": c}`, field: "spec.nodeSelector[a b]"},
	{name: "a node selector value", pod: `nodeSelector: {a: "b c"}`, field: "spec.nodeSelector[a]"},
	{name: "serviceAccountName", pod: `serviceAccountName: A_B`, field: "spec.serviceAccountName"},
	{name: "preemptionPolicy", pod: `preemptionPolicy: Always`, field: "spec.preemptionPolicy"},
	{name: "os", pod: `os: {name: plan9}`, field: "spec.os.name", other: "spec.os"},
	{name: "nodeName beside gates", pod: `{nodeName: a, schedulingGates: [{name: a.dev/b}]}`, field: "spec.nodeName"},
	{name: "a gate", pod: `schedulingGates: [{name: "a b"}]`, field: "spec.schedulingGates[0]"},
	{name: "a readiness gate", pod: `readinessGates: [{conditionType: "a b"}]`, field: "spec.readinessGates[0].conditionType"},
	{name: "shareProcessNamespace", pod: `{shareProcessNamespace: true, hostPID: true}`, field: "spec.shareProcessNamespace"},
	{name: "hostPID beside hostUsers", pod: `{hostUsers: false, hostPID: true}`, field: "spec.hostPID", other: "spec.HostPID"},

	{name: "a toleration operator", pod: `tolerations: [{key: a, operator: Is, value: b}]`, field: "spec.tolerations[0].operator"},
	{name: "a toleration of everything", pod: `tolerations: [{effect: NoSchedule}]`, field: "spec.tolerations[0].operator"},
	{name: "a toleration key", pod: `tolerations: [{key: "a b", operator: Exists}]`, field: "spec.tolerations[0].key"},
	{name: "a toleration value", pod: `tolerations: [{key: a, operator: Exists, value: b}]`, field: "spec.tolerations[0].value", other: "spec.tolerations[0].operator"},
	{name: "a toleration effect", pod: `tolerations: [{key: a, operator: Exists, effect: Never}]`, field: "spec.tolerations[0].effect"},
	{name: "toleration seconds", pod: `tolerations: [{key: a, operator: Exists, effect: NoSchedule, tolerationSeconds: 5}]`, field: "spec.tolerations[0].effect"},

	{name: "no term of nodes", pod: `affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}`,
		field: "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"},
	{name: "an operator of nodes", pod: `affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Is, values: [b]}]}]}}}`,
		field: "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator"},
	{name: "values of nodes", pod: `affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: In}]}]}}}`,
		field: "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values"},
	{name: "a field of nodes", pod: `affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: spec.name, operator: In, values: [b]}]}]}}}`,
		field: "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].key"},
	{name: "a weight of nodes", pod: `affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 0, preference: {matchExpressions: [{key: a, operator: Exists}]}}]}}`,
		field: "spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight"},
	{name: "a weight of pods", pod: `affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 101, podAffinityTerm: {topologyKey: a}}]}}`,
		field: "spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight"},
	{name: "no topology key", pod: `affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchLabels: {a: b}}, topologyKey: ""}]}}`,
		field: "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey"},
	{name: "an operator of pods", pod: `affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchExpressions: [{key: a, operator: Gt, values: [b]}]}, topologyKey: a}]}}`,
		field: "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.matchExpressions[0].operator"},
	{name: "a label of pods", pod: `affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchLabels: {a: "b c"}}, topologyKey: a}]}}`,
		field: "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.matchLabels[a]"},
	{name: "maxSkew", pod: `topologySpreadConstraints: [{maxSkew: 0, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]`, field: "spec.topologySpreadConstraints[0].maxSkew"},
	{name: "whenUnsatisfiable", pod: `topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: Wait}]`, field: "spec.topologySpreadConstraints[0].whenUnsatisfiable"},
	{name: "no spread key", pod: `topologySpreadConstraints: [{maxSkew: 1, topologyKey: "", whenUnsatisfiable: DoNotSchedule}]`, field: "spec.topologySpreadConstraints[0].topologyKey"},
	{name: "minDomains", pod: `topologySpreadConstraints: [{maxSkew: 1, minDomains: 2, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]`, field: "spec.topologySpreadConstraints[0].minDomains"},
	{name: "nodeTaintsPolicy", pod: `topologySpreadConstraints: [{maxSkew: 1, nodeTaintsPolicy: Maybe, topologyKey: a, whenUnsatisfiable: DoNotSchedule}]`, field: "spec.topologySpreadConstraints[0].nodeTaintsPolicy"},

	{name: "a volume of two sources", pod: `volumes: [{name: a, emptyDir: {}, hostPath: {path: /a}}]`, field: "spec.volumes[0].hostPath"},
	{name: "a volume's name", pod: `volumes: [{name: A_B, emptyDir: {}}]`, field: "spec.volumes[0].name"},
	{name: "a claim without name", pod: `volumes: [{name: a, persistentVolumeClaim: {claimName: ""}}]`, field: "spec.volumes[0].persistentVolumeClaim.claimName"},
	{name: "a ConfigMap without name", pod: `volumes: [{name: a, configMap: {}}]`, field: "spec.volumes[0].configMap.name"},
	{name: "a Secret without name", pod: `volumes: [{name: a, secret: {}}]`, field: "spec.volumes[0].secret.secretName"},
	{name: "a mode", pod: `volumes: [{name: a, secret: {secretName: a, defaultMode: 1000}}]`, field: "spec.volumes[0].secret.defaultMode"},
	{name: "a key's path", pod: `volumes: [{name: a, configMap: {name: a, items: [{key: a, path: ../b}]}}]`, field: "spec.volumes[0].configMap.items[0].path"},
	{name: "a negative size", pod: `volumes: [{name: a, emptyDir: {sizeLimit: -1Gi}}]`, field: "spec.volumes[0].emptyDir.sizeLimit"},
	{name: "a path of the node", pod: `volumes: [{name: a, hostPath: {path: ""}}]`, field: "spec.volumes[0].hostPath.path"},
	{name: "a type of path", pod: `volumes: [{name: a, hostPath: {path: /a, type: Folder}}]`, field: "spec.volumes[0].hostPath.type"},
	{name: "an NFS path", pod: `volumes: [{name: a, nfs: {server: a, path: data}}]`, field: "spec.volumes[0].nfs.path"},
	{name: "a CSI driver", pod: `volumes: [{name: a, csi: {driver: ""}}]`, field: "spec.volumes[0].csi.driver"},
	{name: "a claim of no size", pod: `volumes: [{name: a, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {}}}}}]`,
		field: "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources[storage]"},
	{name: "a claim of no access mode", pod: `volumes: [{name: a, ephemeral: {volumeClaimTemplate: {spec: {resources: {requests: {storage: 1Gi}}}}}}]`,
		field: "spec.volumes[0].ephemeral.volumeClaimTemplate.spec.accessModes"},
	{name: "a file of the pod's fields", pod: `volumes: [{name: a, downwardAPI: {items: [{path: a, fieldRef: {fieldPath: spec.nodeName}}]}}]`,
		field: "spec.volumes[0].downwardAPI.items[0].fieldRef.fieldPath", other: "spec.volumes[0].downwardAPI.fieldRef.fieldPath"},
	{name: "a token's time", pod: `volumes: [{name: a, projected: {sources: [{serviceAccountToken: {path: a, expirationSeconds: 60}}]}}]`,
		field: "spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds"},
	{name: "a source of two kinds", pod: `volumes: [{name: a, projected: {sources: [{secret: {name: a}, configMap: {name: a}}]}}]`, field: "spec.volumes[0].projected.sources[0]"},

	{name: "image with a space", container: `image: " a"`, field: "spec.containers[0].image"},
	{name: "imagePullPolicy", container: `imagePullPolicy: Sometimes`, field: "spec.containers[0].imagePullPolicy"},
	{name: "terminationMessagePolicy", container: `terminationMessagePolicy: Log`, field: "spec.containers[0].terminationMessagePolicy"},
	{name: "a variable's name", container: `env: [{name: a=b, value: c}]`, field: "spec.containers[0].env[0].name"},
	{name: "a value twice", container: `env: [{name: A, value: b, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]`, field: "spec.containers[0].env[0].valueFrom"},
	{name: "a value from nowhere", container: `env: [{name: A, valueFrom: {}}]`, field: "spec.containers[0].env[0].valueFrom"},
	{name: "a value from two places", container: `env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}, secretKeyRef: {name: a, key: b}}}]`, field: "spec.containers[0].env[0].valueFrom.secretKeyRef"},
	{name: "fieldPath", container: `env: [{name: A, valueFrom: {fieldRef: {fieldPath: status.podIp}}}]`, field: "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath"},
	{name: "fieldPath of a label", container: `env: [{name: A, valueFrom: {fieldRef: {fieldPath: "metadata.labels['a b']"}}}]`,
		field: "spec.containers[0].env[0].valueFrom.fieldRef.fieldPath"},
	{name: "a resource", container: `env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.gpu}}}]`, field: "spec.containers[0].env[0].valueFrom.resourceFieldRef.resource"},
	{name: "a divisor", container: `env: [{name: A, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 2}}}]`, field: "spec.containers[0].env[0].valueFrom.resourceFieldRef.divisor"},
	{name: "a key", container: `env: [{name: A, valueFrom: {configMapKeyRef: {name: a, key: "b c"}}}]`, field: "spec.containers[0].env[0].valueFrom.configMapKeyRef.key"},
	{name: "variables from nowhere", container: `envFrom: [{prefix: A}]`, field: "spec.containers[0].envFrom[0]"},
	{name: "variables of no ConfigMap", container: `envFrom: [{configMapRef: {name: ""}}]`, field: "spec.containers[0].envFrom[0].configMapRef.name"},
	{name: "a mount of nothing", container: `volumeMounts: [{name: a, mountPath: /a}]`, field: "spec.containers[0].volumeMounts[0].name"},
	{name: "two mounts at one place", pod: `volumes: [{name: a}, {name: b}]`, container: `volumeMounts: [{name: a, mountPath: /a}, {name: b, mountPath: /a}]`,
		field: "spec.containers[0].volumeMounts[1]", alpha: "spec.containers[0].volumeMounts[1].mountPath"},
	{name: "a mount at no place", pod: `volumes: [{name: a}]`, container: `volumeMounts: [{name: a, mountPath: ""}]`, field: "spec.containers[0].volumeMounts[0].mountPath"},
	{name: "subPath", pod: `volumes: [{name: a}]`, container: `volumeMounts: [{name: a, mountPath: /a, subPath: ../b}]`,
		field: "spec.containers[0].volumeMounts[0].subPath", other: "spec.containers[0].volumeMounts.subPath"},
	{name: "mountPropagation", pod: `volumes: [{name: a}]`, container: `volumeMounts: [{name: a, mountPath: /a, mountPropagation: Bidirectional}]`,
		field: "spec.containers[0].volumeMounts[0].mountPropagation", other: "spec.containers[0].volumeMounts.mountPropagation"},
	{name: "recursiveReadOnly", pod: `volumes: [{name: a}]`, container: `volumeMounts: [{name: a, mountPath: /a, recursiveReadOnly: Enabled}]`,
		field: "spec.containers[0].volumeMounts[0].recursiveReadOnly", other: "spec.containers[0].volumeMounts.recursiveReadOnly"},
	{name: "a device of no claim", pod: `volumes: [{name: a}]`, container: `volumeDevices: [{name: a, devicePath: /dev/a}]`, field: "spec.containers[0].volumeDevices[0].name"},

	{name: "requests beyond limits", container: `resources: {limits: {cpu: 1}, requests: {cpu: 2}}`, field: "spec.containers[0].resources.requests[cpu]"},
	{name: "a request of a device without a limit", container: `resources: {requests: {hugepages-2Mi: 4Mi}, limits: {cpu: 1}}`, field: "spec.containers[0].resources.limits[hugepages-2Mi]"},
	{name: "a part of a device", container: `resources: {limits: {example.com/device: 500m}}`, field: "spec.containers[0].resources.limits[example.com/device]"},
	{name: "an unknown resource", container: `resources: {limits: {gpu: 1}}`, field: "spec.containers[0].resources.limits[gpu]"},
	{name: "huge pages alone", container: `resources: {limits: {hugepages-2Mi: 4Mi}}`, field: "spec.containers[0].resources"},
	{name: "a part of a huge page", container: `resources: {limits: {cpu: 1, hugepages-2Mi: 3Mi}}`, field: "spec.containers[0].resources.limits[hugepages-2Mi]"},
	{name: "a claim that is none of the pod's", container: `resources: {claims: [{name: a}]}`, field: "spec.containers[0].resources.claims[0].name"},
	{name: "a pod's claim of nothing", pod: `resourceClaims: [{name: a}]`, field: "spec.resourceClaims[0]"},
	{name: "a pod's request below that of its containers", pod: `resources: {requests: {cpu: 1}}`, container: `resources: {requests: {cpu: 2}}`, field: "spec.resources.requests[cpu]"},
	{name: "a pod's devices", pod: `resources: {requests: {example.com/device: 1}}`, field: "spec.resources.requests[example.com/device]"},

	{name: "a probe of nothing", container: `livenessProbe: {periodSeconds: 5}`, field: "spec.containers[0].livenessProbe"},
	{name: "a probe of two kinds", container: `livenessProbe: {exec: {command: [a]}, tcpSocket: {port: 80}}`, field: "spec.containers[0].livenessProbe.tcpSocket"},
	{name: "a probe's period", container: `livenessProbe: {tcpSocket: {port: 80}, periodSeconds: -5}`, field: "spec.containers[0].livenessProbe.periodSeconds"},
	{name: "a probe's threshold", container: `livenessProbe: {tcpSocket: {port: 80}, successThreshold: 2}`, field: "spec.containers[0].livenessProbe.successThreshold"},
	{name: "a probe's port", container: `readinessProbe: {httpGet: {port: 0}}`, field: "spec.containers[0].readinessProbe.httpGet.port"},
	{name: "a probe's port in quotes", container: `readinessProbe: {httpGet: {port: "80"}}`, field: "spec.containers[0].readinessProbe.httpGet.port"},
	{name: "a probe's scheme", container: `readinessProbe: {httpGet: {port: 80, scheme: http}}`, field: "spec.containers[0].readinessProbe.httpGet.scheme"},
	{name: "a probe without command", container: `startupProbe: {exec: {}}`, field: "spec.containers[0].startupProbe.exec.command"},
	{name: "a readiness probe's grace", container: `readinessProbe: {tcpSocket: {port: 80}, terminationGracePeriodSeconds: 5}`, field: "spec.containers[0].readinessProbe.terminationGracePeriodSeconds"},
	{name: "a hook of nothing", container: `lifecycle: {preStop: {}}`, field: "spec.containers[0].lifecycle.preStop"},
	{name: "a hook that sleeps too long", container: `lifecycle: {preStop: {sleep: {seconds: 60}}}`, field: "spec.containers[0].lifecycle.preStop.sleep"},
	{name: "an init container's probe", pod: `initContainers: [{name: a, image: a, livenessProbe: {tcpSocket: {port: 80}}}]`, field: "spec.initContainers[0].livenessProbe"},
	{name: "a port of the node", container: `ports: [{containerPort: 80, hostPort: 70000}]`, field: "spec.containers[0].ports[0].hostPort"},
	{name: "another port of the node", pod: `hostNetwork: true`, container: `ports: [{containerPort: 80, hostPort: 81}]`, field: "spec.containers[0].ports[0].hostPort"},
	{name: "a protocol", container: `ports: [{containerPort: 80, protocol: HTTP}]`, field: "spec.containers[0].ports[0].protocol"},
	{name: "a port of the node twice", container: `ports: [{containerPort: 80, hostPort: 80}, {containerPort: 81, hostPort: 80}]`, field: "spec.containers[0].ports[1].hostPort"},

	{name: "a user", pod: `securityContext: {runAsUser: -1}`, field: "spec.securityContext.runAsUser"},
	{name: "a group", pod: `securityContext: {fsGroup: 3000000000}`, field: "spec.securityContext.fsGroup"},
	{name: "fsGroupChangePolicy", pod: `securityContext: {fsGroupChangePolicy: Never}`, field: "spec.securityContext.fsGroupChangePolicy"},
	{name: "a seccomp profile of no type", pod: `securityContext: {seccompProfile: {type: ""}}`, field: "spec.securityContext.seccompProfile.type"},
	{name: "a seccomp profile of nobody", pod: `securityContext: {seccompProfile: {type: Localhost}}`, field: "spec.securityContext.seccompProfile.localhostProfile"},
	{name: "a sysctl twice", pod: `securityContext: {sysctls: [{name: net.core.somaxconn, value: "1"}, {name: net.core.somaxconn, value: "2"}]}`, field: "spec.securityContext.sysctls[1].name"},
	{name: "a container's user", container: `securityContext: {runAsUser: -1}`, field: "spec.containers[0].securityContext.runAsUser"},
	{name: "a container's seccomp profile", container: `securityContext: {seccompProfile: {type: Default}}`, field: "spec.containers[0].securityContext.seccompProfile.type"},
	{name: "privileges that do not escalate", container: `securityContext: {privileged: true, allowPrivilegeEscalation: false}`, field: "spec.containers[0].securityContext.allowPrivilegeEscalation"},
	{name: "an AppArmor profile of nobody", container: `securityContext: {appArmorProfile: {type: Localhost}}`, field: "spec.containers[0].securityContext.appArmorProfile.localhostProfile"},
	{name: "procMount", container: `securityContext: {procMount: Unmasked}`, field: "spec.containers[0].securityContext.procMount"},
}

// oddTemplates are those that look wrong and are not.
var oddTemplates = []brokenTemplate{
	{name: "a volume that says nothing", pod: `volumes: [{name: a}]`, container: `volumeMounts: [{name: a, mountPath: a/../b, subPath: c/d}]`},
	{name: "a toleration of everything", pod: `tolerations: [{operator: Exists}, {key: a.b/c, operator: Exists, effect: NoExecute, tolerationSeconds: -5}]`},
	{name: "a variable of any name", container: `env: [{name: "a.b c-d/1"}, {name: B, value: ""}, {name: C, valueFrom: {fieldRef: {fieldPath: "metadata.labels['a.b/c']"}}}]`},
	{name: "an annotation in capitals", metadata: `annotations: {A.example.com/B: "ü"}`},
	{name: "an empty label", metadata: `labels: {a: ""}`},
	{name: "limits without requests", container: `resources: {limits: {cpu: 500m, example.com/device: 2, hugepages-2Mi: 4Mi}}`},
	{name: "requests without limits", container: `resources: {requests: {cpu: 0.1, memory: 1, ephemeral-storage: 1Gi}}`},
	{name: "a resource below kubernetes.io", container: `resources: {requests: {kubernetes.io/batch: 1}}`},
	{name: "negative grace", pod: `terminationGracePeriodSeconds: -5`},
	{name: "no grace", pod: `{terminationGracePeriodSeconds: 0, activeDeadlineSeconds: 2147483647}`},
	{name: "a search of the root", pod: `{dnsPolicy: None, dnsConfig: {nameservers: ["fd00::1"], searches: [., a_b.c.], options: [{name: ndots}]}}`},
	{name: "an alias without names", pod: `hostAliases: [{ip: 127.0.0.1}]`},
	{name: "a side car that starts first", pod: `initContainers: [{name: a, image: a, restartPolicy: Always, startupProbe: {tcpSocket: {port: http}}}]`},
	{name: "probes by default", container: `{readinessProbe: {httpGet: {port: http}, successThreshold: 3}, livenessProbe: {grpc: {port: 1}}, lifecycle: {preStop: {sleep: {seconds: 0}}}}`},
	{name: "the node's ports", pod: `hostNetwork: true`, container: `ports: [{containerPort: 80}, {containerPort: 80, protocol: UDP}]`},
	{name: "one port of the node by protocol", container: `ports: [{containerPort: 80, hostPort: 80}, {containerPort: 81, hostPort: 80, protocol: UDP}]`},
	{name: "a wish for nodes that there are not", pod: `affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: {matchExpressions: [{key: a, operator: Gt, values: ["5"]}, {key: b, operator: In, values: ["c d"]}]}}]}}`},
	{name: "a term of nothing", pod: `affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{}]}}, podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: a}]}}`},
	{name: "a spread of one key in two ways", pod: `topologySpreadConstraints: [{maxSkew: 1, topologyKey: a, whenUnsatisfiable: DoNotSchedule, minDomains: 3}, {maxSkew: 5, topologyKey: a, whenUnsatisfiable: ScheduleAnyway}]`},
	{name: "a token, a map and the labels", pod: `serviceAccountName: default, volumes: [{name: a, projected: {sources: [{serviceAccountToken: {path: t}}, {configMap: {name: a}}, {downwardAPI: {items: [{path: l, fieldRef: {fieldPath: metadata.labels}}, {path: m, resourceFieldRef: {containerName: b, resource: limits.memory, divisor: 1Mi}}]}}]}}]`},
	{name: "a claim for the pod's life", pod: `volumes: [{name: a, ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}}}]`, container: `volumeDevices: [{name: a, devicePath: /dev/a}]`},
	{name: "claims of devices", pod: `resourceClaims: [{name: a, resourceClaimTemplateName: b.c}]`, container: `resources: {claims: [{name: a, request: b}]}`},
	{name: "everything of a node", pod: `{hostPID: true, hostIPC: true, hostUsers: true}`, container: `securityContext: {privileged: true, runAsUser: 0, capabilities: {add: [ALL]}}`},
	{name: "profiles", pod: `securityContext: {seccompProfile: {type: Localhost, localhostProfile: a/b.json}, appArmorProfile: {type: RuntimeDefault}, sysctls: [{name: net/core/somaxconn, value: "1"}]}`},
	{name: "an old name of a field", container: `env: [{name: A, valueFrom: {fieldRef: {apiVersion: v1, fieldPath: status.podIPs}}}, {name: B, valueFrom: {resourceFieldRef: {resource: requests.hugepages-2Mi, divisor: 1Mi}}}]`},
	{name: "gates", pod: `{schedulingGates: [{name: kueue.x-k8s.io/topology}], readinessGates: [{conditionType: a.b/c}]}`},
	{name: "a pull secret without a name", pod: `imagePullSecrets: [{}]`},
	{name: "a pod's own resources", pod: `resources: {requests: {cpu: 2}, limits: {cpu: 2, memory: 1Gi}}`, container: `resources: {requests: {cpu: 1}}`},
}

func (b brokenTemplate) template() map[string]any {
	GinkgoHelper()
	parse := func(text string) map[string]any {
		if text != "" && !strings.HasPrefix(text, "{") {
			text = "{" + text + "}"
		}
		fields := map[string]any{}
		Expect(yaml.Unmarshal([]byte(text), &fields)).To(Succeed(), text)
		return fields
	}
	container := parse(b.container)
	container["name"] = "jax"
	if container["image"] == nil {
		container["image"] = "images.example/train:1"
	}
	spec := parse(b.pod)
	spec["containers"] = []any{container}
	return map[string]any{"metadata": parse(b.metadata), "spec": spec}
}

// asPod makes the pod of a template, and asJob a job of it, without storing any.
func asPod(ctx context.Context, namespace string, template map[string]any) error {
	pod := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(template)}
	pod.SetAPIVersion("v1")
	pod.SetKind("Pod")
	return createDry(ctx, namespace, pod)
}

func asJob(ctx context.Context, namespace, version string, template map[string]any) error {
	spec := map[string]any{"framework": "JAX", "roles": []any{map[string]any{"name": "Worker", "template": runtime.DeepCopyJSON(template)}}}
	if version == "v1alpha1" {
		spec = map[string]any{"jaxReplicaSpecs": map[string]any{"Worker": map[string]any{"template": runtime.DeepCopyJSON(template)}}}
	}
	job := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	job.SetAPIVersion("penstock.dev/" + version)
	job.SetKind("TrainingJob")
	return createDry(ctx, namespace, job)
}

func createDry(ctx context.Context, namespace string, object *unstructured.Unstructured) error {
	object.SetName("template")
	object.SetNamespace(namespace)
	return k8s.Create(ctx, object, client.DryRunAll)
}

// causes are the fields that a refusal names.
func causes(err error) []string {
	status, ok := err.(apierrors.APIStatus)
	if !ok || status.Status().Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		fields = append(fields, cause.Field)
	}
	return fields
}

func related(a, b string) bool {
	return a == b || strings.HasPrefix(a, b+".") || strings.HasPrefix(a, b+"[") || strings.HasPrefix(b, a+".") || strings.HasPrefix(b, a+"[")
}

// The template's faults that admission finds are those that the API server
// refuses the pods for, no less and no more.
var _ = Describe("pod templates", Ordered, ContinueOnFailure, func() {
	var namespace string
	BeforeAll(func(ctx context.Context) {
		namespace = newNamespace(ctx, nil)
		account := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount",
			"metadata": map[string]any{"name": "default", "namespace": namespace}}}
		Expect(k8s.Create(ctx, account)).To(Succeed())
	})

	for _, broken := range brokenTemplates {
		It("are refused for "+broken.name, func(ctx context.Context) {
			template := broken.template()
			err := asPod(ctx, namespace, template)
			// What a plugin of the API server forbids names no field.
			Expect(err).To(Or(Satisfy(apierrors.IsInvalid), Satisfy(apierrors.IsForbidden)), "the API server says %v", err)
			there := broken.field
			if broken.other != "" {
				there = broken.other
			}
			if apierrors.IsInvalid(err) {
				Expect(causes(err)).To(ContainElement(Satisfy(func(field string) bool { return related(field, there) })), "the API server says %v", err)
			}

			for version, path := range map[string]string{"v1": "spec.roles[0].template.", "v1alpha1": "spec.jaxReplicaSpecs.Worker.template."} {
				want := path + broken.field
				if version == "v1alpha1" && broken.alpha != "" {
					want = path + broken.alpha
				}
				err = asJob(ctx, namespace, version, template)
				Expect(apierrors.IsInvalid(err)).To(BeTrue(), "%s: Penstock says %v", version, err)
				Expect(causes(err)).To(Equal([]string{want}), "%s: once, and nothing else: %v", version, err)
				for _, cause := range err.(apierrors.APIStatus).Status().Details.Causes {
					Expect(cause.Message).To(MatchRegexp(`(: .*(: |; |\?)|^Required value: .+|\(policy .+\)$)`), "a fix")
				}
			}
		})
	}

	for _, odd := range oddTemplates {
		It("are admitted with "+odd.name, func(ctx context.Context) {
			template := odd.template()
			Expect(asPod(ctx, namespace, template)).To(Succeed())
			Expect(asJob(ctx, namespace, "v1", template)).To(Succeed())
			Expect(asJob(ctx, namespace, "v1alpha1", template)).To(Succeed())
		})
	}

	It("have a name of their own in the corpus", func() {
		for _, corpus := range [][]brokenTemplate{brokenTemplates, oddTemplates} {
			var names []string
			for _, template := range corpus {
				Expect(names).NotTo(ContainElement(template.name))
				names = append(names, template.name)
			}
			Expect(slices.Contains(names, "")).To(BeFalse(), fmt.Sprint(names))
		}
	})
})
