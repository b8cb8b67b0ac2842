package policies_test

import (
	"testing"
)

// TestRatchetOfNamedItems: the items of lists are compared with those of the same
// name, wherever they stand.
func TestRatchetOfNamedItems(t *testing.T) {
	const (
		images = `package p
violation contains {"msg": sprintf("image %s is not ours", [c.image]), "field": sprintf("spec.%s[%d].image", [list, i])} if {
  some list in ["containers", "initContainers"]
  some i, c in input.object.spec[list]
  not startswith(c.image, "ours/")
}`
		review = `package p
violation contains {"msg": "image is not ours", "field": "spec.containers[0].image"} if {
  not startswith(input.review.object.spec.containers[0].image, "ours/")
}`
		env = `package p
violation contains {"msg": "a secret is written out", "field": sprintf("spec.containers[%d].env[%d].value", [i, j])} if {
  some i, c in input.object.spec.containers
  some j, e in c.env
  contains(e.name, "KEY")
  e.value
}`
		volumes = `package p
violation contains {"msg": "hostPath is not allowed", "field": sprintf("spec.volumes[%d]", [i])} if {
  some i, v in input.object.spec.volumes
  v.hostPath
}`
		ports = `package p
violation contains {"msg": "a port of the host is taken", "field": sprintf("spec.containers[%d].ports[%d].hostPort", [i, j])} if {
  some i, c in input.object.spec.containers
  some j, p in c.ports
  p.hostPort
}`
		mounts = `package p
violation contains {"msg": "is writable", "field": sprintf("spec.volumeMounts[%d]", [i])} if {
  some i, m in input.object.spec.volumeMounts
  not m.readOnly
}`
		templates = `package p
violation contains {"msg": "image is not ours", "field": sprintf("spec.roles[%d].template.spec.containers[%d].image", [i, j])} if {
  some i, r in input.object.spec.roles
  some j, c in r.template.spec.containers
  not startswith(c.image, "ours/")
}`
		tolerations = `package p
violation contains {"msg": "tolerates all", "field": sprintf("spec.tolerations[%d]", [i])} if {
  some i, t in input.object.spec.tolerations
  t.operator == "Exists"
  not t.key
}`
		args = `package p
violation contains {"msg": "debugs", "field": sprintf("spec.args[%d]", [i])} if {
  some i, a in input.object.spec.args
  a == "--debug"
}`
		terms = `package p
violation contains {"msg": "takes any", "field": sprintf("spec.terms[%d]", [i])} if {
  some i, t in input.object.spec.terms
  t.any
}`
		dotted = `package p
violation contains {"msg": "image is not ours", "field": "spec.containers.0.image"} if {
  not startswith(input.object.spec.containers[0].image, "ours/")
}`
	)
	for name, tc := range map[string]struct {
		rego     string
		old, new string
		denied   bool
	}{
		"a sidecar in front of an old violator": {
			images, `{"containers":[{"name":"main","image":"x"}]}`, `{"containers":[{"name":"side","image":"ours/s"},{"name":"main","image":"x"}]}`, false,
		},
		"a sidecar in front is removed": {
			images, `{"containers":[{"name":"side","image":"ours/s"},{"name":"main","image":"x"}]}`, `{"containers":[{"name":"main","image":"x"}]}`, false,
		},
		"an init container in front": {
			images, `{"initContainers":[{"name":"i","image":"x"}]}`, `{"initContainers":[{"name":"h","image":"ours/h"},{"name":"i","image":"x"}]}`, false,
		},
		"a container becomes an init container": {
			images, `{"containers":[{"name":"main","image":"x"}]}`, `{"initContainers":[{"name":"main","image":"x"}]}`, true,
		},
		"a new violator takes the index of an old one": {
			images, `{"containers":[{"name":"main","image":"x"}]}`, `{"containers":[{"name":"side","image":"x"},{"name":"main","image":"ours/m"}]}`, true,
		},
		"a new violator beside an old one": {
			images, `{"containers":[{"name":"main","image":"x"}]}`, `{"containers":[{"name":"side","image":"x"},{"name":"main","image":"x"}]}`, true,
		},
		"the old violator by another name": {
			images, `{"containers":[{"name":"main","image":"x"}]}`, `{"containers":[{"name":"other","image":"x"}]}`, true,
		},
		"another image": {
			images, `{"containers":[{"name":"main","image":"x"}]}`, `{"containers":[{"name":"side","image":"ours/s"},{"name":"main","image":"y"}]}`, true,
		},
		"names that are doubled": {
			images, `{"containers":[{"name":"main","image":"x"}]}`, `{"containers":[{"name":"main","image":"ours/s"},{"name":"main","image":"x"}]}`, true,
		},
		"containers without names": {
			images, `{"containers":[{"image":"x"}]}`, `{"containers":[{"image":"x"},{"image":"ours/s"}]}`, false,
		},
		"containers without names, moved": {
			images, `{"containers":[{"image":"x"}]}`, `{"containers":[{"image":"ours/s"},{"image":"x"}]}`, true,
		},
		"a fixed index, at another container": {
			review, `{"containers":[{"name":"main","image":"x"}]}`, `{"containers":[{"name":"side","image":"x"},{"name":"main","image":"x"}]}`, true,
		},
		"a fixed index, at the same": {
			review, `{"containers":[{"name":"main","image":"x"}]}`, `{"containers":[{"name":"main","image":"x"},{"name":"side","image":"ours/s"}]}`, false,
		},
		"an index between dots": {
			dotted, `{"containers":[{"name":"main","image":"x"}]}`, `{"containers":[{"name":"side","image":"x"}]}`, true,
		},
		"a variable in front": {
			env, `{"containers":[{"name":"a","env":[{"name":"KEY","value":"1"}]}]}`,
			`{"containers":[{"name":"b"},{"name":"a","env":[{"name":"DEBUG","value":"1"},{"name":"KEY","value":"1"}]}]}`, false,
		},
		"the variable of another container": {
			env, `{"containers":[{"name":"a","env":[{"name":"KEY","value":"1"}]},{"name":"b"}]}`,
			`{"containers":[{"name":"b","env":[{"name":"KEY","value":"1"}]},{"name":"a"}]}`, true,
		},
		"another variable in its place": {
			env, `{"containers":[{"name":"a","env":[{"name":"KEY","value":"1"}]}]}`, `{"containers":[{"name":"a","env":[{"name":"KEY2","value":"1"}]}]}`, true,
		},
		"a volume in front": {
			volumes, `{"volumes":[{"name":"h","hostPath":{"path":"/"}}]}`, `{"volumes":[{"name":"e","emptyDir":{}},{"name":"h","hostPath":{"path":"/"}}]}`, false,
		},
		"a volume of another path": {
			volumes, `{"volumes":[{"name":"h","hostPath":{"path":"/a"}}]}`, `{"volumes":[{"name":"h","hostPath":{"path":"/"}}]}`, true,
		},
		"a port in front": {
			ports, `{"containers":[{"name":"a","ports":[{"containerPort":80,"protocol":"TCP","hostPort":80}]}]}`,
			`{"containers":[{"name":"a","ports":[{"containerPort":81,"protocol":"TCP"},{"containerPort":80,"protocol":"TCP","hostPort":80}]}]}`, false,
		},
		"a port that says its protocol now": {
			ports, `{"containers":[{"name":"a","ports":[{"containerPort":80,"hostPort":80}]}]}`,
			`{"containers":[{"name":"a","ports":[{"containerPort":81},{"containerPort":80,"hostPort":80,"protocol":"TCP"}]}]}`, false,
		},
		"a port of another protocol": {
			ports, `{"containers":[{"name":"a","ports":[{"containerPort":80,"protocol":"TCP","hostPort":80}]}]}`,
			`{"containers":[{"name":"a","ports":[{"containerPort":80,"protocol":"UDP","hostPort":80}]}]}`, true,
		},
		"a mount in front": {
			mounts, `{"volumeMounts":[{"name":"v","mountPath":"/v"}]}`, `{"volumeMounts":[{"name":"v","mountPath":"/w","readOnly":true},{"name":"v","mountPath":"/v"}]}`, false,
		},
		"a sidecar in front, of a role that moves": {
			templates, `{"roles":[{"name":"Worker","template":{"spec":{"containers":[{"name":"main","image":"x"}]}}}]}`,
			`{"roles":[{"name":"Master","template":{}},{"name":"Worker","template":{"spec":{"containers":[{"name":"side","image":"ours/s"},{"name":"main","image":"x"}]}}}]}`, false,
		},
		"the same container of another role": {
			templates, `{"roles":[{"name":"Worker","template":{"spec":{"containers":[{"name":"main","image":"x"}]}}}]}`,
			`{"roles":[{"name":"Master","template":{"spec":{"containers":[{"name":"main","image":"x"}]}}}]}`, true,
		},
		"a toleration in front": {
			tolerations, `{"tolerations":[{"operator":"Exists"}]}`, `{"tolerations":[{"key":"gpu","operator":"Exists"},{"operator":"Exists"}]}`, false,
		},
		"a toleration of another effect": {
			tolerations, `{"tolerations":[{"operator":"Exists","effect":"NoExecute"}]}`, `{"tolerations":[{"operator":"Exists","effect":"NoSchedule"}]}`, true,
		},
		"an argument in front": {
			args, `{"args":["--debug"]}`, `{"args":["--fast","--debug"]}`, false,
		},
		"an argument once more": {
			args, `{"args":["--debug"]}`, `{"args":["--fast","--debug","--debug"]}`, true,
		},
		"a list that nothing tells apart": {
			terms, `{"terms":[{"any":true}]}`, `{"terms":[{"any":false},{"any":true}]}`, true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			verdict := judge(t, policy("p", tc.rego), updateRequest([]byte(`{"spec":`+tc.old+`}`), []byte(`{"spec":`+tc.new+`}`)))
			if len(verdict.Errors) > 0 || len(verdict.Violations)+len(verdict.Tolerated) == 0 {
				t.Fatalf("got %+v", verdict)
			}
			if got := !verdict.Allowed(); got != tc.denied {
				t.Errorf("denied is %t, want %t: violations %v, tolerated %v", got, tc.denied, verdict.Violations, verdict.Tolerated)
			}
		})
	}
}
