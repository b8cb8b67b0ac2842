package v1

import (
	"slices"
	"strings"
)

// frameworkFacts is what every room needs to know of a framework. The names,
// ports and restart policies are those of the Kubeflow Training Operator
// (release 1.9, pkg/apis/kubeflow.org/v1), so that manifests and images made
// for it run unchanged.
type frameworkFacts struct {
	roles     []RoleName
	leaders   []RoleName
	container string
	portName  string
	port      int32
	restart   RestartPolicy
}

var frameworks = map[Framework]frameworkFacts{
	FrameworkPyTorch: {
		roles: []RoleName{RoleMaster, RoleWorker}, leaders: []RoleName{RoleMaster},
		container: "pytorch", portName: "pytorchjob-port", port: 23456, restart: RestartOnFailure,
	},
	FrameworkTensorFlow: {
		roles:   []RoleName{RoleChief, RoleMaster, RoleWorker, RolePS, RoleEvaluator},
		leaders: []RoleName{RoleChief, RoleMaster}, container: "tensorflow",
		portName: "tfjob-port", port: 2222, restart: RestartNever,
	},
	// MPI declares no port: processes are started over ssh.
	FrameworkMPI: {
		roles: []RoleName{RoleLauncher, RoleWorker}, leaders: []RoleName{RoleLauncher},
		container: "mpi", restart: RestartNever,
	},
	FrameworkPaddlePaddle: {
		roles: []RoleName{RoleMaster, RoleWorker}, leaders: []RoleName{RoleMaster},
		container: "paddle", portName: "master", port: 36543, restart: RestartOnFailure,
	},
	FrameworkXGBoost: {
		roles: []RoleName{RoleMaster, RoleWorker}, leaders: []RoleName{RoleMaster},
		container: "xgboost", portName: "xgboostjob-port", port: 9999, restart: RestartNever,
	},
	FrameworkJAX: {
		roles:     []RoleName{RoleWorker},
		container: "jax", portName: "jaxjob-port", port: 6666, restart: RestartNever,
	},
}

// Known reports whether the framework is one that Penstock runs.
func (f Framework) Known() bool {
	_, known := frameworks[f]
	return known
}

// Roles returns the names of the roles that a job of the framework can have,
// in canonical order; none for an unknown framework.
func (f Framework) Roles() []RoleName {
	return append([]RoleName(nil), frameworks[f].roles...)
}

// CanonicalRole returns the framework's own spelling of a role name that was
// written in any case, and whether the framework has such a role.
func (f Framework) CanonicalRole(name RoleName) (RoleName, bool) {
	for _, role := range frameworks[f].roles {
		if strings.EqualFold(string(role), string(name)) {
			return role, true
		}
	}
	return name, false
}

// Leads reports whether the role is the one whose end decides the job: Master,
// Chief or Launcher. There is at most one such role in a job, with one pod.
// Without one, worker 0 leads.
func (f Framework) Leads(name RoleName) bool {
	return slices.Contains(frameworks[f].leaders, name)
}

// MainContainer returns the name of the container that runs the framework:
// port, environment and exit code hang on it.
func (f Framework) MainContainer() string {
	return frameworks[f].container
}

// Port returns the name and the number of the port at which the pods of the
// framework meet; empty and 0 for MPI, which meets over ssh.
func (f Framework) Port() (name string, number int32) {
	facts := frameworks[f]
	return facts.portName, facts.port
}

// RestartPolicy returns the restart policy of a role that has none.
func (f Framework) RestartPolicy(name RoleName) RestartPolicy {
	// MPIJob v2beta1: a launcher that fails is tried again, workers are not.
	if f == FrameworkMPI && name == RoleLauncher {
		return RestartOnFailure
	}
	return frameworks[f].restart
}
