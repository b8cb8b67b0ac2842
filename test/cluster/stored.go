package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// Stored gives what etcd holds of a custom resource's object, as the API server
// stored it. plural and group name the resource; namespace is empty for
// cluster-scoped objects. It is nil where there is no such object.
func (c *Cluster) Stored(ctx context.Context, group, plural, namespace, name string) ([]byte, error) {
	key := "/registry/" + group + "/" + plural + "/"
	if namespace != "" {
		key += namespace + "/"
	}
	question, err := json.Marshal(map[string][]byte{"key": []byte(key + name)})
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.etcdURL+"/v3/kv/range", bytes.NewReader(question))
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("failed to ask etcd: %w", err)
	}
	defer response.Body.Close()
	var answer struct {
		Kvs []struct {
			Value []byte `json:"value"`
		} `json:"kvs"`
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("etcd answered %s", response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return nil, fmt.Errorf("failed to read what etcd answers: %w", err)
	}
	if len(answer.Kvs) == 0 {
		return nil, nil
	}
	return answer.Kvs[0].Value, nil
}
