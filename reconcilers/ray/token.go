package ray

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"

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
	name := tokenSecretName(p.cluster)
	for _, secret := range plan.ChildrenOf[*corev1.Secret](p.observed) {
		if secret.Name == name {
			return
		}
	}
	p.result.Generate = append(p.result.Generate, plan.Generated{
		Generator: tokenGenerator,
		Child: &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.cluster.Namespace, Labels: clusterLabels(p.cluster)},
			Type:       corev1.SecretTypeOpaque,
		},
	})
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
