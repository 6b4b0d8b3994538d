package webhook_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/fleet/webhook"
	"github.com/musterfleet/muster/model"
)

const valid = `webhooks:
  - name: pager
    url: https://alerts.example.net/muster
    secret_file: pager.secret
    kinds: [run]
    outcomes: [failed, refused]
`

func TestParse(t *testing.T) {
	t.Parallel()
	with := func(old, text string) string { return strings.Replace(valid, old, text, 1) }
	for name, c := range map[string]struct{ text, want string }{
		"valid":          {valid, ""},
		"loopback":       {with("https://alerts.example.net", "http://127.0.0.1:9000"), ""},
		"localhost":      {with("https://alerts.example.net", "http://localhost:9000"), ""},
		"IPv6 loopback":  {with("https://alerts.example.net", "http://[::1]:9000"), ""},
		"nothing":        {"", "hooks.yaml: `webhooks` must have 1 to 50 items, not 0"},
		"too many":       {"webhooks:\n" + strings.Repeat(strings.TrimPrefix(valid, "webhooks:\n"), 51), "hooks.yaml:2:3: `webhooks` must have 1 to 50 items, not 51"},
		"unknown key":    {with("kinds", "kind"), "hooks.yaml:5:5: unknown key `kind` in `webhooks.0`"},
		"no name":        {with("name: pager", "name: a b"), "hooks.yaml:2:11: `name` must be one word of letters, digits, - and _, at most 32"},
		"the same twice": {valid + strings.TrimPrefix(valid, "webhooks:\n"), "hooks.yaml:7:11: the name pager is not unique"},
		"no URL":         {with("    url: https://alerts.example.net/muster\n", ""), "hooks.yaml:2:5: `url` is missing"},
		"clear text":     {with("https", "http"), "hooks.yaml:3:10: `url` must begin with https://; http:// is for loopback only"},
		"another scheme": {with("https", "ftp"), "`url` must begin with https://"},
		"no host":        {with("https://alerts.example.net/muster", "/muster"), "`url` must be an absolute URL"},
		"a password":     {with("https://", "https://me:hidden@"), "`url` must have no user and password"},
		"no secret":      {with("    secret_file: pager.secret\n", ""), "hooks.yaml:2:5: `secret_file` is missing"},
		"unknown kind":   {with("[run]", "[runs]"), "hooks.yaml:5:12: `kinds` has \"runs\", and can have run, transaction, health, ensure, node"},
		"no outcome":     {with("[failed, refused]", "[red]"), "hooks.yaml:6:15: `outcomes` has \"red\", and can have stable, changed"},
		"nearly one":     {with("[failed, refused]", "[rejectd]"), "hooks.yaml:6:15: `outcomes` has \"rejectd\", and can have stable, "},
		"nearly a kind":  {with("[run]", "[runs]"), "health, ensure, node (did you mean `run`?)"},
		"what was meant": {with("[failed, refused]", "[rejectd]"), "(did you mean `rejected`?)"},
		"no cause":       {valid + "    causes: [me]\n", "hooks.yaml:7:13: `causes` has \"me\", and can have manifest, schedule"},
		"a wildcard":     {valid + "    nodes: ['*']\n", "hooks.yaml:7:12: `nodes` must be words of letters"},
		"a key":          {valid + "    manifests: [node.web01.motd]\n", "hooks.yaml:7:16: `manifests` must be words of letters"},
		"no YAML":        {"webhooks: [", "hooks.yaml:"},
	} {
		hooks, err := webhook.Parse("hooks.yaml", []byte(c.text))
		switch {
		case c.want == "" && (err != nil || len(hooks) != 1 || hooks[0].Name != "pager"):
			t.Errorf("%s: %+v %v", name, hooks, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %s", name, err, c.want)
		case err != nil && strings.Contains(err.Error(), "hidden"):
			t.Errorf("%s: shows a password: %v", name, err)
		}
	}
}

// TestRejectedIsRefused: pages and commands say rejected, reports have refused.
func TestRejectedIsRefused(t *testing.T) {
	t.Parallel()
	hooks, err := webhook.Parse("hooks.yaml", []byte(strings.Replace(valid, "refused", "rejected", 1)))
	if err != nil || len(hooks) != 1 || !slices.Equal(hooks[0].Outcomes, []string{"failed", "refused"}) {
		t.Fatalf("%+v %v", hooks, err)
	}
	if !hooks[0].Matches(model.Report{Node: "web01", Kind: model.KindRun, Outcome: model.OutcomeRefused}) {
		t.Error("a rejection is not sent")
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	r := model.Report{Node: "web01", Kind: model.KindRun, Outcome: model.OutcomeFailed, Cause: model.CauseDrift, Manifest: "group.all.motd"}
	for _, c := range []struct {
		hook webhook.Hook
		want bool
	}{
		{webhook.Hook{}, true},
		{webhook.Hook{Kinds: []string{"node", "run"}, Outcomes: []string{"failed"}, Causes: []string{"drift"}, Nodes: []string{"web01"}, Manifests: []string{"motd"}}, true},
		{webhook.Hook{Kinds: []string{"node"}}, false},
		{webhook.Hook{Outcomes: []string{"changed"}}, false},
		{webhook.Hook{Causes: []string{"schedule"}}, false},
		{webhook.Hook{Nodes: []string{"web02"}}, false},
		{webhook.Hook{Manifests: []string{"sshd"}}, false},
	} {
		if got := c.hook.Matches(r); got != c.want {
			t.Errorf("%+v: %v", c.hook, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(valid)
	f.Add("webhooks: [{name: [], url: {}}]")
	f.Fuzz(func(t *testing.T, text string) {
		hooks, err := webhook.Parse("hooks.yaml", []byte(text))
		for _, h := range hooks {
			if err == nil && (!model.IsToken(h.Name) || h.SecretFile == "" || !strings.HasPrefix(strings.ToLower(h.URL), "http")) {
				t.Errorf("%+v is taken", h)
			}
		}
	})
}
