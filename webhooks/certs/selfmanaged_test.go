package certs

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	servertls "github.com/cert-manager/cert-manager/pkg/server/tls"
)

// A scene is a source that runs, with its authority and its clock in hand. Real
// time only passes in the leaves: they begin before it.
type scene struct {
	t         *testing.T
	source    *SelfManaged
	authority *rotating
	ahead     atomic.Int64
	start     time.Time
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, start: time.Now()}
	s.authority = &rotating{by: newIssuer(t, "first", s.start.Add(100*time.Hour)), until: s.start.Add(4 * time.Hour)}
	s.source = newSelfManaged([]string{"penstock-webhook.penstock-system.svc"}, func() time.Time {
		return s.start.Add(time.Duration(s.ahead.Load()))
	}, s.authority)
	if _, err := s.source.GetCertificate(nil); !errors.Is(err, servertls.ErrNotAvailable) || s.source.Healthy() {
		t.Fatalf("serves before it was started: %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- s.source.Start(t.Context()) }()
	t.Cleanup(func() {
		if err := <-done; err != nil {
			t.Errorf("the source failed: %v", err)
		}
	})
	s.await("the first leaf", s.source.Healthy)
	return s
}

func (s *scene) await(what string, is func() bool) {
	s.t.Helper()
	deadline := time.After(30 * time.Second)
	for !is() {
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			s.t.Fatalf("waited for %s in vain", what)
		}
	}
}

func (s *scene) pass(d time.Duration) { s.ahead.Add(int64(d)) }

// renew has the source make another leaf, by an authority and until an instant.
func (s *scene) renew(by *issuer, until time.Duration) {
	s.t.Helper()
	before, err := s.source.dynamic.GetCertificate(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	s.authority.rotate(by, s.start.Add(until))
	s.await("a new leaf", func() bool {
		now, err := s.source.dynamic.GetCertificate(nil)
		return err == nil && now != before
	})
}

func (s *scene) served() *tls.Certificate {
	s.t.Helper()
	certificate, err := s.source.GetCertificate(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return certificate
}

// by names the authority of the leaf that is served.
func (s *scene) by() string {
	s.t.Helper()
	leaf, err := x509.ParseCertificate(s.served().Certificate[0])
	if err != nil {
		s.t.Fatal(err)
	}
	return leaf.Issuer.CommonName
}

func (s *scene) expect(when, want string) {
	s.t.Helper()
	if got := s.by(); got != want {
		s.t.Errorf("%s: a leaf of %q is served, want one of %q", when, got, want)
	}
}

func TestFirstStart(t *testing.T) {
	s := newScene(t)
	s.expect("before anybody trusts it", "first")
	if s.source.Accepted() {
		t.Error("callers accept it before anybody trusts it")
	}
	s.source.trust(s.authority.by.pem)
	s.expect("once it is trusted", "first")
	if !s.source.Accepted() {
		t.Error("callers do not accept it although it is trusted")
	}
	if s.source.NeedLeaderElection() {
		t.Error("only the leader would serve")
	}
}

func TestRotationServesTheOldLeafUntilTheNewOneIsTrusted(t *testing.T) {
	s := newScene(t)
	s.source.trust(s.authority.by.pem)
	second := newIssuer(t, "second", s.start.Add(100*time.Hour))
	s.expect("at first", "first")
	s.renew(second, 6*time.Hour)
	s.pass(time.Hour)
	s.expect("while the new authority is not trusted", "first")
	s.source.trust(second.pem)
	s.expect("while API servers read the new bundle", "first")
	s.pass(spread / 2)
	s.source.trust(second.pem)
	s.expect("before all API servers have read it", "first")
	s.pass(spread)
	s.expect("once they have", "second")
	s.source.trust(second.pem)
	s.expect("ever after", "second")
}

func TestExpiredLeafIsNotServed(t *testing.T) {
	s := newScene(t)
	s.source.trust(s.authority.by.pem)
	s.expect("at first", "first")
	s.renew(newIssuer(t, "second", s.start.Add(100*time.Hour)), 12*time.Hour)
	s.pass(3 * time.Hour)
	s.expect("while the old leaf is valid", "first")
	s.pass(2 * time.Hour)
	s.expect("after it expired, trusted or not", "second")
}

func TestRotationBeforeAnythingIsTrusted(t *testing.T) {
	s := newScene(t)
	s.expect("at first", "first")
	s.renew(newIssuer(t, "second", s.start.Add(100*time.Hour)), 6*time.Hour)
	s.expect("where no leaf is trusted, the newest", "second")
}

// API servers whose clocks are behind do not accept a leaf from its first
// second on.
func TestRenewedLeafIsServedOnceItIsValidEverywhere(t *testing.T) {
	s := newScene(t)
	s.source.trust(s.authority.by.pem)
	s.pass(time.Minute)
	old := s.served()
	// A leaf begins ten hours before it ends.
	s.renew(s.authority.by, 10*time.Hour+time.Minute)
	if s.served() != old {
		t.Error("the new leaf is served in its first second")
	}
	s.pass(spread)
	if s.served() == old {
		t.Error("the new leaf is not served")
	}
}

func TestAuthoritiesThatExpiredAreForgotten(t *testing.T) {
	s := newScene(t)
	short := newIssuer(t, "short", s.start.Add(time.Hour))
	s.source.trust(short.pem)
	s.pass(2 * time.Hour)
	s.source.trust(s.authority.by.pem)
	if want := string(s.authority.by.pem); string(s.source.bundle) != want {
		t.Errorf("got bundle\n%s\nwant\n%s", s.source.bundle, want)
	}
}
