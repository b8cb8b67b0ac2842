package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"
)

// How ray does as far as a cluster of pods sees it: a head that nodes join, a
// URL of each node that says whether it is well, and nodes that end when their
// head does, or is another one.

const (
	// heartbeat is how often a node calls its head, missed how often in vain
	// before it ends.
	heartbeat = time.Second
	missed    = 3
)

// ray runs "start [--head] [--FLAG[=VALUE]...]" or "health-check --address HOST:PORT".
func ray(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("use ray start or ray health-check")
	}
	flags := rayFlags(args[1:])
	switch {
	case args[0] == "health-check":
		_, err := call(ctx, "http://"+flags["address"]+"/health", nil)
		return err
	case args[0] != "start":
		return fmt.Errorf("ray has no command %q here", args[0])
	case flags["head"] != "":
		return rayHead(ctx, flags)
	default:
		return rayNode(ctx, flags)
	}
}

// rayFlags reads --name=value, --name value and --name.
func rayFlags(args []string) map[string]string {
	flags := map[string]string{}
	for i := 0; i < len(args); i++ {
		name, value, given := strings.Cut(strings.TrimLeft(args[i], "-"), "=")
		if !given && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			i++
			value, given = args[i], true
		}
		if !given {
			value = "true"
		}
		flags[name] = value
	}
	return flags
}

// rayHead is the control store: it tells who joins, once for each.
func rayHead(ctx context.Context, flags map[string]string) error {
	port := flags["port"]
	if port == "" {
		port = "6379"
	}
	var mu sync.Mutex
	joined := map[string]bool{}
	session := fmt.Sprint(time.Now().UnixNano())
	store := http.NewServeMux()
	store.HandleFunc("/health", func(http.ResponseWriter, *http.Request) {})
	store.HandleFunc("/join", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if name := r.FormValue("name"); !joined[name] {
			joined[name] = true
			fmt.Printf("%s of %s joined with %s CPUs\n", name, r.FormValue("group"), r.FormValue("cpus"))
		}
		fmt.Fprint(w, session)
	})
	go func() { _ = http.ListenAndServe(":"+port, store) }()
	return rayAgent(ctx, flags)
}

// rayNode joins a head and calls it until it is another one, or none.
func rayNode(ctx context.Context, flags map[string]string) error {
	ending, end := context.WithCancelCause(ctx)
	go func() {
		first, failures := "", 0
		for {
			session, err := call(ctx, "http://"+flags["address"]+"/join", url.Values{
				"name": {os.Getenv("RAY_CLOUD_INSTANCE_ID")}, "group": {os.Getenv("RAY_NODE_TYPE_NAME")}, "cpus": {flags["num-cpus"]},
			})
			switch {
			case err != nil:
				failures++
			case first == "":
				first, failures = session, 0
			case session != first:
				end(errors.New("the head is another one"))
			default:
				failures = 0
			}
			if failures > missed {
				end(fmt.Errorf("the head is lost: %w", err))
			}
			select {
			case <-ending.Done():
				return
			case <-time.After(heartbeat):
			}
		}
	}()
	if err := rayAgent(ending, flags); err != nil {
		return err
	}
	if cause := context.Cause(ending); ctx.Err() == nil {
		return cause
	}
	return nil
}

// rayAgent says that the node is well, until it ends.
func rayAgent(ctx context.Context, flags map[string]string) error {
	agent := &http.Server{Addr: ":" + flags["dashboard-agent-listen-port"], BaseContext: func(net.Listener) context.Context { return ctx }}
	mux := http.NewServeMux()
	mux.HandleFunc("/api/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "success") })
	agent.Handler = mux
	context.AfterFunc(ctx, func() { _ = agent.Close() })
	if err := agent.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// call asks a head and returns what it says.
func call(ctx context.Context, at string, form url.Values) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, heartbeat)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, at, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	said := make([]byte, 64)
	n, _ := response.Body.Read(said)
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s says %s", at, response.Status)
	}
	return string(said[:n]), nil
}
