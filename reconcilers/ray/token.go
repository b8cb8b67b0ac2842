package ray

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/penstock-dev/penstock/reconcilers/plan"
)

// tokenGenerator names generateToken. Plan names it; the loop runs it.
const tokenGenerator = "ray-token"

// planToken asks for the secret of the shared token, once.
func (p *planner) planToken() {
	if !authenticates(p.cluster) || takesKubernetesTokens(p.cluster) || p.cluster.Spec.Auth.SecretName != nil {
		return
	}
	if p.tokenSecret() != nil {
		return
	}
	p.result.Generate = append(p.result.Generate, plan.Generated{
		Generator: tokenGenerator,
		Child: &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Name: tokenSecretName(p.cluster), Namespace: p.cluster.Namespace, Labels: clusterLabels(p.cluster)},
			Type:       corev1.SecretTypeOpaque,
		},
	})
}

func (p *planner) tokenSecret() *corev1.Secret {
	for _, secret := range plan.ChildrenOf[*corev1.Secret](p.observed) {
		if secret.Name == tokenSecretName(p.cluster) {
			return secret
		}
	}
	return nil
}

// renewsToken deletes all pods where the token is younger than one of them, and
// says whether that is going on: somebody has deleted the secret, and pods that
// start with the new token would not be let in by those that hold the old one.
// The older ones go last, so that one that is still there stands for all.
func (p *planner) renewsToken() bool {
	if !authenticates(p.cluster) || takesKubernetesTokens(p.cluster) || p.cluster.Spec.Auth.SecretName != nil {
		return false
	}
	secret := p.tokenSecret()
	if secret == nil {
		return false
	}
	isOlder := func(u *unit) bool {
		// Of a pod of another template nobody knows whether it holds a token.
		return !p.outdated(u) && slices.ContainsFunc(u.pods(), func(pod *corev1.Pod) bool {
			return pod.CreationTimestamp.Before(&secret.CreationTimestamp)
		})
	}
	units := p.census.units()
	if !slices.ContainsFunc(units, isOlder) {
		return false
	}
	if !slices.ContainsFunc(units, func(u *unit) bool { return u.leaving }) {
		p.event(tokenRenewed())
	}
	for _, older := range []bool{false, true} {
		for _, u := range units {
			if isOlder(u) == older {
				p.removeUnit(u, "holds an older token")
			}
		}
	}
	return true
}

// generateToken fills a secret with a token of 32 random bytes.
func generateToken(child plan.Object) error {
	secret, ok := child.(*corev1.Secret)
	if !ok {
		return fmt.Errorf("a token goes into a Secret, not into a %T", child)
	}
	token := make([]byte, 32)
	if _, err := rand.Read(token); err != nil {
		return fmt.Errorf("failed to make a token: %w", err)
	}
	secret.Data = map[string][]byte{tokenKey: []byte(base64.RawURLEncoding.EncodeToString(token))}
	return nil
}
