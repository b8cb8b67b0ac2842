package stored

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// ServedRetry is how soon to look for kinds that are not served, and whether those
// that were installed still are: that tells nobody.
const ServedRetry = 15 * time.Second

// A KindMapper knows the kinds that the API server serves; a
// meta.RESTMapper is one. It gives a NoMatchError for others.
type KindMapper interface {
	// RESTMapping gives the resource of a kind, in one of the versions or else
	// in the preferred one.
	RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error)
}

// askedOnce is the mapper of AskOnce.
type askedOnce struct {
	mapper  KindMapper
	answers map[string]mapperAnswer
}

type mapperAnswer struct {
	mapping *meta.RESTMapping
	err     error
}

// AskOnce gives a mapper that asks another one for each kind once: for one that is
// not served, the API server is asked each time. It is for one goroutine, and for no
// longer than the answers may be old.
func AskOnce(mapper KindMapper) KindMapper {
	return &askedOnce{mapper: mapper, answers: map[string]mapperAnswer{}}
}

// RESTMapping is of KindMapper.
func (m *askedOnce) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	key := kind.String() + " " + strings.Join(versions, " ")
	answer, ok := m.answers[key]
	if !ok {
		answer.mapping, answer.err = m.mapper.RESTMapping(kind, versions...)
		m.answers[key] = answer
	}
	return answer.mapping, answer.err
}
