package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
)

// Stored gives what etcd holds of a custom resource's object, as the API server
// stored it. plural and group name the resource; namespace is empty for
// cluster-scoped objects. It is nil where there is no such object.
func (c *Cluster) Stored(ctx context.Context, group, plural, namespace, name string) ([]byte, error) {
	var answer struct {
		Kvs []struct {
			Value []byte `json:"value"`
		} `json:"kvs"`
	}
	question := map[string][]byte{"key": storageKey(group, plural, namespace, name)}
	if err := c.askEtcd(ctx, "range", question, &answer); err != nil || len(answer.Kvs) == 0 {
		return nil, err
	}
	return answer.Kvs[0].Value, nil
}

// Store puts an object of a custom resource into etcd as if an API server had
// stored it: one of another release, say.
func (c *Cluster) Store(ctx context.Context, group, plural, namespace, name string, object []byte) error {
	var answer struct{}
	return c.askEtcd(ctx, "put", map[string][]byte{"key": storageKey(group, plural, namespace, name), "value": object}, &answer)
}

// writers is how many objects are put into etcd at once.
const writers = 8

// StoreAll puts many objects into etcd; object gives the name
// and the content of each.
func (c *Cluster) StoreAll(ctx context.Context, group, plural, namespace string, count int, object func(int) (name string, content []byte)) error {
	numbers := make(chan int)
	failures := make(chan error, writers)
	for range writers {
		go func() {
			var failed error
			for i := range numbers {
				if failed == nil {
					name, content := object(i)
					failed = c.Store(ctx, group, plural, namespace, name, content)
				}
			}
			failures <- failed
		}()
	}
	for i := range count {
		numbers <- i
	}
	close(numbers)
	var failed error
	for range writers {
		failed = errors.Join(failed, <-failures)
	}
	return failed
}

func storageKey(group, plural, namespace, name string) []byte {
	return []byte(path.Join("/registry", group, plural, namespace, name))
}

// askEtcd calls etcd by its JSON gateway.
func (c *Cluster) askEtcd(ctx context.Context, what string, question map[string][]byte, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.etcdURL+"/v3/kv/"+what, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("failed to ask etcd: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd answered %s", response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return fmt.Errorf("failed to read what etcd answers: %w", err)
	}
	return nil
}
