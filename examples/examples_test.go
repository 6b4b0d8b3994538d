package examples_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources"
	"github.com/musterfleet/muster/resources/engine/plan"
	"github.com/musterfleet/muster/resources/host/facts"
	"github.com/musterfleet/muster/resources/host/paths"
	"github.com/musterfleet/muster/resources/manifest"
	"github.com/musterfleet/muster/schemas"
)

// manifests returns the paths of the manifests in this folder.
func manifests(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	directories, err := filepath.Glob("*/manifest.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if all := append(files, directories...); len(all) >= 6 {
		return all
	}
	t.Fatalf("there are only %q and %q", files, directories)

	return nil
}

// machines are facts under which each example must hold: those of this machine,
// and some that take every override.
func machines(t *testing.T) map[string]model.Facts {
	t.Helper()
	here, _ := facts.Gather(t.Context(), facts.Options{})
	machine := func(family, role, environment string) model.Facts {
		f := model.Facts{
			"hostname": "n1", "fqdn": "n1.example.com", "role": role, "environment": environment, "site": "berlin",
			"cpu":    map[string]any{"count": 2.0},
			"memory": map[string]any{"virtual": map[string]any{"total": 2.0 * (1 << 30)}},
			"host": map[string]any{"info": map[string]any{
				"hostname": "n1", "os": "linux", "platform": family, "platformFamily": family, "platformVersion": "12",
				"kernelVersion": "6.1.0", "kernelArch": "x86_64", "virtualizationSystem": "lxc", "virtualizationRole": "guest",
			}},
		}
		return f
	}

	return map[string]model.Facts{
		"this machine": here,
		"router":       machine("debian", "router", "production"),
		"bastion":      machine("rhel", "bastion", "staging"),
		"web":          machine("debian", "web", "production"),
		"database":     machine("suse", "database", "none"),
	}
}

func resolve(ctx context.Context, path string, f model.Facts) (*manifest.Resolved, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	doc, err := manifest.Parse(path, text)
	if err != nil {
		return nil, err
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	author, err := paths.AuthorIn(dir)
	if err != nil {
		return nil, err
	}

	return manifest.NewLoader(manifest.Options{Types: resources.All()}).Resolve(ctx, doc, manifest.Inputs{Facts: f, Dir: dir, Author: author})
}

func TestExamplesHoldOnEveryMachine(t *testing.T) {
	for _, path := range manifests(t) {
		for name, f := range machines(t) {
			t.Run(path+"/"+name, func(t *testing.T) {
				resolved, err := resolve(t.Context(), path, f)
				if err != nil {
					t.Fatal(err)
				}
				if len(resolved.Warnings) > 0 {
					t.Errorf("warnings: %v", resolved.Warnings)
				}
				if _, err := plan.Build(resolved.Resources, nil); err != nil {
					t.Error(err)
				}
				first, err := resolved.Render()
				if err != nil {
					t.Fatal(err)
				}
				again, err := resolve(t.Context(), path, f)
				if err != nil {
					t.Fatal(err)
				}
				if second, err := again.Render(); err != nil || !bytes.Equal(first, second) {
					t.Errorf("it comes to something else the second time (%v):\n%s\n%s", err, first, second)
				}
			})
		}
	}
}

func TestExamplesAreDescribed(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	modeline := "# yaml-language-server: $schema=" + schemas.URL("manifest") + "\n#\n# "
	for _, path := range manifests(t) {
		if !strings.Contains(string(readme), "("+path+")") {
			t.Errorf("README.md has no link to %s", path)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), modeline) {
			t.Errorf("%s does not begin with %q and a comment that says what it is for", path, modeline)
		}
	}
}

// TestWhatComesOut looks at the texts that data and expressions make.
func TestWhatComesOut(t *testing.T) {
	all := machines(t)
	for _, row := range []struct{ path, machine, want string }{
		{"motd.yaml", "router", "n1.example.com  (router, production)"},
		{"motd.yaml", "router", "2 processors, 2 GiB of memory"},
		{"motd.yaml", "router", "This is a production machine."},
		{"motd.yaml", "database", "ops@example.com"},
		{"motd.yaml", "database", `if [ -n "${BASH_VERSION:-}" ]`},
		{"sysctl.yaml", "router", "kernel.kptr_restrict = 2\nnet.ipv4.conf.all.accept_redirects = 0\nnet.ipv4.conf.all.rp_filter = 2\nnet.ipv4.ip_forward = 1\n"},
		{"sysctl.yaml", "database", "vm.overcommit_memory = 2\nvm.swappiness = 1\n"},
		{"sshd.yaml", "bastion", "MaxAuthTries 2\n"},
		{"sshd.yaml", "bastion", "SERVICE=sshd\n"},
		{"sshd.yaml", "web", "AllowTcpForwarding no\n"},
		{"logrotate.yaml", "web", "/var/log/agent/*.log\n/var/log/shop/access.log\n/var/log/shop/error.log\n{\n"},
		{"logrotate.yaml", "web", "rotate 90\n"},
		{"logrotate.yaml", "bastion", "rotate 7\n"},
		{"apt.yaml", "web", `Acquire::http::Proxy "http://apt-cache.berlin.example.com:3142";`},
		{"etc-backup/manifest.yaml", "web", "KEEP=60\n"},
		{"etc-backup/manifest.yaml", "bastion", "17 2 * * * root /usr/local/sbin/etc-backup\n"},
		{"site/manifest.yaml", "web", "server_name localhost n1.example.com;\n    root /srv/site;\n    location = /old { return 301 /new; }\n}\n"},
		{"site/manifest.yaml", "web", "<h1>Welcome on n1</h1>"},
		{"shop/manifest.yaml", "web", `"workers": 16`},
		{"shop/manifest.yaml", "bastion", "\"features\": [\n    \"search\",\n    \"basket\"\n  ]"},
	} {
		resolved, err := resolve(t.Context(), row.path, all[row.machine])
		if err != nil {
			t.Errorf("%s on %s: %v", row.path, row.machine, err)
			continue
		}
		if text := values(resolved); !strings.Contains(text, row.want) {
			t.Errorf("%s on %s has no %q in it:\n%s", row.path, row.machine, row.want, text)
		}
	}
}

// values are all texts among the properties of what a manifest comes to.
func values(resolved *manifest.Resolved) string {
	var b strings.Builder
	for _, r := range resolved.Resources {
		for _, p := range r.Type.Properties {
			if f := p.Of(r.Spec); f.Kind().String() == "string" {
				b.WriteString(f.String() + "\n")
			} else if text, ok := f.Interface().(*string); ok && text != nil {
				b.WriteString(*text)
			} else if list, ok := f.Interface().([]string); ok {
				b.WriteString(strings.Join(list, "\n") + "\n")
			}
		}
	}

	return b.String()
}

// TestMistakesInDataAreFound tries values that the checks of the examples are there for.
func TestMistakesInDataAreFound(t *testing.T) {
	for _, row := range []struct {
		path, want string
		data       map[string]any
	}{
		{"sshd.yaml", "max_auth_tries", map[string]any{"max_auth_tries": 9}},
		{"sshd.yaml", "permit_root_login", map[string]any{"permit_root_login": "yes"}},
		{"logrotate.yaml", "logs.keep", map[string]any{"logs": map[string]any{"keep": 1}}},
		{"logrotate.yaml", "logs.files", map[string]any{"logs": map[string]any{"files": []any{"/etc/passwd"}}}},
		{"apt.yaml", "proxy", map[string]any{"proxy": "ftp://x"}},
		{"etc-backup/manifest.yaml", "keep", map[string]any{"keep": 0}},
		{"site/manifest.yaml", "listen", map[string]any{"listen": 70000}},
		{"shop/manifest.yaml", "user", map[string]any{"user": ""}},
		{"motd.yaml", "contact", map[string]any{"contact": ""}},
	} {
		text, err := os.ReadFile(row.path)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := manifest.Parse(row.path, text)
		if err != nil {
			t.Fatal(err)
		}
		_, err = manifest.NewLoader(manifest.Options{Types: resources.All()}).Resolve(t.Context(), doc, manifest.Inputs{Facts: machines(t)["bastion"], Data: row.data})
		if err == nil || !strings.Contains(err.Error(), "`"+row.want+"`") {
			t.Errorf("%s with %v gives %v", row.path, row.data, err)
		}
	}
}
