package validation_test

import (
	"testing"
)

func TestTellsApart(t *testing.T) {
	schema := trainingJobSchema(t)
	for path, want := range map[string]bool{
		"spec.roles[1]": true,
		"spec.roles[0].template.spec.containers[1]":         true,
		"spec.roles[0].template.spec.containers[0].args[1]": false,
		"spec.roles[0].template.spec.containers":            false,
		"spec.roles[1].name":                                false,
		"spec.nothing[1]":                                   false,
		"spec.nothing.at.all[0][1]":                         false,
		"spec":                                              false,
		"":                                                  false,
	} {
		if got := schema.TellsApart(path); got != want {
			t.Errorf("TellsApart(%q) = %v", path, got)
		}
	}
}

// TestRepeated holds the quick look for what is in a list twice to the API
// server's own code, which names what it finds.
func TestRepeated(t *testing.T) {
	schema := trainingJobSchema(t)
	container := func(more string) map[string]any {
		return contentOf(t, head+`spec: {framework: JAX, roles: [{name: Worker, template: {spec: {containers: [{name: jax, image: a`+more+`}]}}}]}`)
	}
	const two = `, ports: [{name: a, containerPort: 80, protocol: TCP}, {name: b, containerPort: 80, protocol: TCP}]`
	tests := map[string]struct {
		old, obj map[string]any
		want     int
	}{
		"nothing":                        {nil, container(""), 0},
		"ports of two protocols":         {nil, container(`, ports: [{containerPort: 80, protocol: TCP}, {containerPort: 80, protocol: UDP}]`), 0},
		"one port twice":                 {nil, container(two), 1},
		"one port three times":           {nil, container(`, ports: [{containerPort: 1}, {containerPort: 1}, {containerPort: 1}]`), 1},
		"that was there already":         {container(two), container(two), 0},
		"beside another that was":        {container(two), container(two + `}, {name: jax, image: b`), 0},
		"a container that was not there": {container(""), container(`}, {name: jax, image: b`), 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if errs := schema.Repeated(tc.old, tc.obj); len(errs) != tc.want {
				t.Errorf("%v, want %d faults", errs, tc.want)
			}
		})
	}
}
