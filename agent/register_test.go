package agent_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/model/registration"
)

// directory is what the node registers itself in.
type directory struct {
	mu    sync.Mutex
	sent  []registration.Registration
	tries int
	err   error
}

func (d *directory) Register(_ context.Context, r registration.Registration) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.tries++
	if d.err == nil {
		d.sent = append(d.sent, r)
	}

	return d.err
}

// since returns the registrations since the last call, and the number of attempts.
func (d *directory) since() (sent []registration.Registration, tries int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	sent, tries = d.sent, d.tries
	d.sent, d.tries = nil, 0

	return sent, tries
}

func (d *directory) setErr(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

// registering is a node with a service that registers itself for 30 seconds.
func registering(t *testing.T, f func(n *node, d *directory, c *clinic)) {
	t.Helper()
	bubble(t, func(_ *testing.T, n *node) {
		d, c := &directory{}, &clinic{statuses: map[string]model.HealthStatus{}}
		n.registry, n.checker = d, c
		n.config.Interval = model.Duration(time.Hour)
		n.start()
		n.bucket.put("group.all.shop", registeringShop(8080))
		n.settle()
		f(n, d, c)
	})
}

func registeringShop(port int) string {
	return fmt.Sprintf(`muster: {resources: [{exec: [{shop: {command: "true", refresh_only: true, health_checks: [{name: http, command: a}],
  register_when_stable: [{cluster: prod, service: shop, protocol: http, address: "${ Facts.role }.example.net", port: %d, ttl: 30s, annotations: {a: b}}]}}]}]}
`, port)
}

func TestRegistrationIsRenewed(t *testing.T) {
	registering(t, func(n *node, d *directory, _ *clinic) {
		sent, _ := d.since()
		if len(sent) != 1 {
			t.Fatalf("%+v", sent)
		}
		got := fmt.Sprintf("%+v", sent[0])
		want := "{Protocol:io.muster.v1.registration Cluster:prod Service:shop ProtocolName:http Address:web.example.net Port:8080 Priority:1 TTL:30s Annotations:map[a:b] Node:web01_example_net}"
		if got != want {
			t.Errorf("got %s\nwant %s", got, want)
		}
		n.after(10 * time.Minute)
		if sent, _ := d.since(); len(sent) < 50 || len(sent) > 70 {
			t.Errorf("it was registered %d times in ten minutes", len(sent))
		}
	})
}

func TestRegistrationEndsWithTheHealth(t *testing.T) {
	registering(t, func(n *node, d *directory, c *clinic) {
		c.set("http", model.HealthCritical)
		n.after(2 * time.Minute)
		d.since()
		n.after(10 * time.Minute)
		if sent, _ := d.since(); len(sent) > 0 {
			t.Errorf("%d times although it is critical", len(sent))
		}
		c.set("http", model.HealthWarning)
		n.after(70 * time.Second)
		if sent, _ := d.since(); len(sent) == 0 {
			t.Error("it is not registered again")
		}
	})
}

// TestRegistrationOfWhatIsNotRepaired: only requested runs reach it.
func TestRegistrationOfWhatIsNotRepaired(t *testing.T) {
	for _, drift := range []string{"report", "ignore"} {
		registering(t, func(n *node, d *directory, c *clinic) {
			n.bucket.put("group.all.shop", strings.Replace(registeringShop(8080), "{shop: {", "{shop: {drift: "+drift+", ", 1))
			n.settle()
			c.set("http", model.HealthCritical)
			n.after(2 * time.Minute)
			d.since()
			n.after(10 * time.Minute)
			if sent, _ := d.since(); len(sent) > 0 {
				t.Errorf("%s: %d times although it is critical", drift, len(sent))
			}
			c.set("http", model.HealthOK)
			n.after(70 * time.Second)
			if sent, _ := d.since(); len(sent) == 0 {
				t.Errorf("%s: it is not registered again", drift)
			}
		})
	}
}

func TestRegistrationEndsWithTheAssignment(t *testing.T) {
	registering(t, func(n *node, d *directory, _ *clinic) {
		n.bucket.remove("group.all.shop")
		n.settle()
		d.since()
		n.after(10 * time.Minute)
		if sent, _ := d.since(); len(sent) > 0 {
			t.Errorf("%d times although it is not assigned", len(sent))
		}
	})
}

func TestRegistrationThatIsAnother(t *testing.T) {
	registering(t, func(n *node, d *directory, _ *clinic) {
		n.bucket.put("group.all.shop", registeringShop(9090))
		n.settle()
		d.since()
		n.after(time.Minute)
		sent, _ := d.since()
		for _, r := range sent {
			if r.Port != 9090 {
				t.Errorf("%+v", r)
			}
		}
		n.bucket.put("group.all.shop", "muster: {resources: [{exec: [{shop: {command: \"true\", refresh_only: true}}]}]}\n")
		n.settle()
		d.since()
		n.after(time.Minute)
		if sent, _ := d.since(); len(sent) > 0 {
			t.Errorf("%+v", sent)
		}
	})
}

// TestRegistrationWhileNATSIsAway is tried again and again, and at once when NATS is back.
func TestRegistrationWhileNATSIsAway(t *testing.T) {
	registering(t, func(n *node, d *directory, _ *clinic) {
		d.setErr(errors.New("away"))
		d.since()
		n.after(10 * time.Minute)
		if _, tries := d.since(); tries < 20 || tries > 200 {
			t.Errorf("%d tries in ten minutes", tries)
		}
		d.setErr(nil)
		n.agent.Connected()
		n.settle()
		if sent, _ := d.since(); len(sent) != 1 {
			t.Errorf("%+v", sent)
		}
	})
}

func TestNoopRegistersNothing(t *testing.T) {
	registering(t, func(n *node, d *directory, _ *clinic) {
		n.bucket.put("group.web.other", n.assignment("noop: true", strings.Replace(registeringShop(1), "{shop:", "{other:", 1)))
		n.settle()
		n.after(time.Minute)
		sent, _ := d.since()
		for _, r := range sent {
			if r.Port == 1 {
				t.Errorf("%+v", r)
			}
		}
	})
}

// TestRegistrationAfterARestart: only requested runs reach a resource whose drift is not repaired. So an
// earlier registration is renewed at once, or after its health check if it has one.
func TestRegistrationAfterARestart(t *testing.T) {
	for _, drift := range []string{"repair", "report", "ignore"} {
		for _, status := range []model.HealthStatus{model.HealthOK, model.HealthCritical} {
			registering(t, func(n *node, d *directory, c *clinic) {
				plain := `{plain: {command: "true", refresh_only: true, register_when_stable: [{cluster: prod, service: plain, protocol: http, address: a, port: 1, ttl: 30s}]}}`
				n.bucket.put("group.all.shop", strings.Replace(registeringShop(8080), "exec: [", "exec: [{defaults: {drift: "+drift+"}}, "+plain+", ", 1))
				n.settle()
				n.stop()
				c.set("http", status)
				n.start()
				d.since()
				n.after(3 * time.Minute)
				sent, _ := d.since()
				count := map[string]int{}
				for _, r := range sent {
					count[r.Service]++
				}
				if count["plain"] == 0 || (count["shop"] > 0) != (status == model.HealthOK) {
					t.Errorf("%s, %s: registered %v", drift, status, count)
				}
			})
		}
	}
}

// TestRestartRegistersNothingNew: what only has its health checks made does not
// register, after a restart either.
func TestRestartRegistersNothingNew(t *testing.T) {
	for _, checked := range []bool{false, true} {
		bubble(t, func(t *testing.T, n *node) {
			d := &directory{}
			n.registry = d
			child := strings.Replace(registeringShop(8080), "health_checks: [{name: http, command: a}],", "drift: ignore,", 1)
			if err := os.WriteFile(n.path("child.yaml"), []byte(child), 0o600); err != nil {
				t.Fatal(err)
			}
			n.start()
			n.bucket.put("group.all.shop", fmt.Sprintf("muster: {resources: [{apply: [{%q: {health_check_only: %v}}]}]}", n.path("child.yaml"), checked))
			n.settle()
			n.stop()
			n.start()
			d.since()
			n.after(time.Minute)
			if sent, _ := d.since(); (len(sent) == 0) != checked {
				t.Errorf("health checks only %v: registered %v", checked, sent)
			}
		})
	}
}
