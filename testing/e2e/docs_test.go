package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/musterfleet/muster/agent"
	"github.com/musterfleet/muster/agent/config"
	"github.com/musterfleet/muster/testing/hosttest"
	"github.com/musterfleet/muster/testing/markdown"
	"github.com/musterfleet/muster/testing/natstest"
)

// docsPage gives a page of the documentation.
func docsPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
	if err != nil {
		t.Fatal(err)
	}

	return string(text)
}

// show is a directory for the examples of a page. Changes below /etc happen below this directory, without
// root.
type show struct {
	t   *testing.T
	dir string
	url string
}

func newShow(t *testing.T, url string) *show {
	t.Helper()
	s := &show{t: t, dir: t.TempDir(), url: url}
	if err := os.Mkdir(filepath.Join(s.dir, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}

	return s
}

func (s *show) rewrite(text string) string {
	uid, gid := hosttest.Owner(s.t)

	return strings.NewReplacer(
		"/etc/", s.dir+"/etc/", "owner: root", `owner: "`+uid+`"`, "group: root", `group: "`+gid+`"`,
		"--owner root", "--owner "+uid, "--group root", "--group "+gid, "--file-group root", "--file-group "+gid,
	).Replace(text)
}

// write makes a file of a block that begins with the comment that names it.
func (s *show) write(b markdown.Block) {
	s.t.Helper()
	line, _, _ := strings.Cut(b.Text, "\n")
	if name, is := strings.CutPrefix(line, "# "); is && filepath.Ext(name) == ".yaml" {
		write(s.t, filepath.Join(s.dir, name), s.rewrite(b.Text))
	}
}

// run runs a block of shell and gives all that it printed.
func (s *show) run(b markdown.Block) string {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "/bin/sh", "-euc", "exec 2>&1\n"+s.rewrite(b.Text))
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "MUSTER_STATE_DIR="+s.dir+"/state", "MUSTER_CONFIG_DIR="+s.dir+"/config", "HOME="+s.dir, "TMPDIR="+s.dir, "NO_COLOR=1", "NATS_URL="+s.url)
	out, err := cmd.CombinedOutput()
	if err != nil {
		s.t.Errorf("line %d: %v\n%s", b.Line, err, out)
	}

	return strings.ReplaceAll(string(out), s.dir, "")
}

// compare fails unless a block has all that was printed that it shows.
func (s *show) compare(want markdown.Block, got string) {
	s.t.Helper()
	if line := missing(want.Text, got); line != "" {
		s.t.Errorf("line %d: %q is not in its place in\n%s", want.Line, line, got)
	}
}

// missing returns the first line of want that is not in the output, in order; … matches anything.
func missing(want, got string) string {
	lines := strings.Split(got, "\n")
	for line := range strings.Lines(want) {
		line = strings.TrimRight(line, "\n")
		expr := regexp.MustCompile(strings.ReplaceAll(regexp.QuoteMeta(line), "…", ".*"))
		at := slices.IndexFunc(lines, expr.MatchString)
		if at < 0 {
			return line
		}
		lines = lines[at+1:]
	}

	return ""
}

// agent runs the agent of the examples until stop is called, and waits until it is known.
func (s *show) agent(args ...string) (stop func()) {
	s.t.Helper()
	p := start(s.t, filepath.Join(s.dir, "node"), append([]string{"agent", "run", "--config-dir", s.dir, "--node", "web01", "--group", "web"}, args...)...)
	await(s.t, "web01 is known", func() bool {
		return strings.Contains(s.run(markdown.Block{Text: "muster fleet nodes"}), "web01")
	})

	return func() {
		s.t.Helper()
		_ = p.cmd.Process.Signal(syscall.SIGINT)
		if code, said := p.wait(); code != 0 {
			s.t.Errorf("the agent ended with %d:\n%s", code, said)
		}
	}
}

// TestExamplesOfTheDocumentation runs the examples of each page and compares their output with the page.
func TestExamplesOfTheDocumentation(t *testing.T) {
	for name, least := range map[string]int{"manifest.md": 6, "apply.md": 8, "health.md": 3, "registrations.md": 5, "types/file.md": 2, "types/line.md": 2, "types/block.md": 2, "types/setting.md": 2, "types/exec.md": 2, "types/scaffold.md": 2, "types/apply.md": 1, "coming-from/choria-ccm.md": 1, "guides/without-a-type.md": 1, "types/link.md": 2} {
		t.Run(name, func(t *testing.T) {
			s := newShow(t, natstest.Start(t).URL())
			ran := 0
			blocks := markdown.Blocks(docsPage(t, name))
			for i, b := range blocks {
				s.write(b)
				if b.Language != "sh" || b.Info != "run" {
					continue
				}
				s.compare(blocks[i+1], s.run(b))
				ran++
			}
			if ran < least {
				t.Errorf("only %d examples were run", ran)
			}
		})
	}
}

// TestExamplesOfAFleet runs the examples of the pages of a fleet, in this order, with one node.
func TestExamplesOfAFleet(t *testing.T) {
	s := newShow(t, natstest.Start(t).URL())
	ran := 0
	for _, name := range []string{"provision", "assign", "status", "targets", "query", "pause", "labels", "history", "requests"} {
		blocks := markdown.Blocks(docsPage(t, "fleet/"+name+".md"))
		for i, b := range blocks {
			s.write(b)
			if b.Language != "sh" || b.Info != "run" {
				continue
			}
			s.compare(blocks[i+1], s.run(b))
			if ran++; ran == 1 {
				defer s.agent("--server", s.url)()
			}
		}
	}
	if ran < 11 {
		t.Errorf("only %d examples were run", ran)
	}
}

// find gives the first block of a kind.
func find(t *testing.T, page, language, info string) markdown.Block {
	t.Helper()
	for _, b := range markdown.Blocks(page) {
		if b.Language == language && b.Info == info {
			return b
		}
	}
	t.Fatalf("there is no block of %s %s", language, info)

	return markdown.Block{}
}

// TestConfigurationOfTheServer starts a server as the page configures it, with
// the permissions that muster prints, and runs a node there: with the
// assignment that the page shows, and reports of the form that it shows.
func TestConfigurationOfTheServer(t *testing.T) {
	page := docsPage(t, "fleet/assign.md")
	s := newShow(t, "")
	permissions := s.run(markdown.Block{Text: "muster fleet permissions web01 --groups web"})
	deployed, err := os.ReadFile("../../deploy/nats.conf")
	if err != nil {
		t.Fatal(err)
	}
	text := string(deployed)
	if want := "jetstream: {store_dir: \"/var/lib/nats\"}\n" + s.run(markdown.Block{Text: "muster fleet accounts"}); text != want {
		t.Errorf("deploy/nats.conf is not what muster fleet accounts prints:\n%s", want)
	}
	write(t, filepath.Join(s.dir, "web01.conf"), permissions)
	path := write(t, filepath.Join(s.dir, "nats.conf"), text)
	if opts, err := server.ProcessConfigFile(path); err != nil || len(opts.Users) != 2 {
		t.Fatal(err)
	}

	const include = `include "web01.conf"`
	if strings.Count(text, include) != 1 {
		t.Fatal("the configuration does not include the permissions")
	}
	srv := natstest.Start(t, natstest.WithConfig(strings.Replace(text, include, permissions, 1)))
	as := func(user, password string) string {
		return strings.Replace(srv.URL(), "://", "://"+user+":"+password+"@", 1)
	}
	s.url = as("admin", "change%20me")
	s.run(markdown.Block{Text: "muster fleet init"})
	defer s.agent("--server", as("web01", "change%20me%20too"))()

	js, err := jetstream.New(srv.Connect(t, nats.UserInfo("admin", "change me")))
	if err != nil {
		t.Fatal(err)
	}
	kv, err := js.KeyValue(t.Context(), "MUSTER_MANIFESTS")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.PutString(t.Context(), "node.web01.shown", s.rewrite(find(t, page, "yaml", "assignment").Text)); err != nil {
		t.Fatal(err)
	}
	s.run(markdown.Block{Text: "muster fleet wait node.web01.shown"})
	if _, err := kv.PutString(t.Context(), "group.web.motd", "muster: {resources: []}"); err != nil {
		t.Fatal(err)
	}
	s.compare(markdown.Block{Text: "1/1 nodes up to date"}, s.run(markdown.Block{Text: "muster fleet wait group.web.motd"}))
	checkEvent(t, js)
}

// checkEvent compares a report in the stream with the report on the page.
func checkEvent(t *testing.T, js jetstream.JetStream) {
	t.Helper()
	stream, err := js.Stream(t.Context(), "MUSTER_REPORTS")
	if err != nil {
		t.Fatal(err)
	}
	var message *jetstream.RawStreamMsg
	await(t, "the report of the run", func() bool {
		for _, outcome := range []string{"stable", "changed"} {
			if m, err := stream.GetLastMsgForSubject(t.Context(), "muster.report.web01.run."+outcome); err == nil {
				message = m
			}
		}
		return message != nil
	})
	keys := func(text string) []string {
		var v map[string]json.RawMessage
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		return slices.Sorted(maps.Keys(v))
	}
	shown := find(t, docsPage(t, "agent.md"), "json", "").Text
	if got, want := keys(string(message.Data)), keys(shown); !slices.Equal(got, want) {
		t.Errorf("an event has %q, the page shows %q", got, want)
	}
	if got := message.Header.Get("Content-Type"); got != "application/cloudevents+json" {
		t.Errorf("the content type is %q", got)
	}
}

// TestConfigurationIsDocumented compares the table of the agent's page with its configuration.
func TestConfigurationIsDocumented(t *testing.T) {
	page := docsPage(t, "agent.md")
	section := markdown.Section(page, "## Configuration")
	var want []string
	for f := range reflect.TypeFor[agent.Config]().Fields() {
		key := f.Tag.Get("json")
		if f.Type.Kind() != reflect.Struct {
			want = append(want, key)
			continue
		}
		for inner := range f.Type.Fields() {
			want = append(want, key+"."+inner.Tag.Get("json"))
		}
	}
	if got := markdown.Rows(section); !slices.Equal(got, want) {
		t.Errorf("the table has %q, the configuration %q", got, want)
	}
	row := regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\| `([^`.][^`]*)` \\|")
	rows := row.FindAllStringSubmatch(section, -1)
	for _, r := range rows {
		text := r[1] + ": " + r[2]
		if outer, inner, nested := strings.Cut(r[1], "."); nested {
			text = outer + ": {" + inner + ": " + r[2] + "}"
		}
		got, err := config.Parse("table", []byte(text), config.Default("host"))
		if err != nil || !reflect.DeepEqual(got, config.Default("host")) {
			t.Errorf("%s is not the default: %v", text, err)
		}
	}
	if len(rows) < 12 {
		t.Errorf("only %d defaults were found", len(rows))
	}
	if _, err := config.Parse("agent.yaml", []byte(find(t, page, "yaml", "agent").Text), config.Default("host")); err != nil {
		t.Error(err)
	}
}
