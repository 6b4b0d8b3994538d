package docs_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/musterfleet/muster/testing/markdown"
)

// product returns the Go source of muster, which contains its messages.
func product(t *testing.T) string {
	t.Helper()
	var all bytes.Buffer
	for _, room := range []string{"agent", "cmd", "fleet", "kvstore", "model", "resources", "deploy"} {
		err := filepath.WalkDir(filepath.Join("..", room), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || strings.HasSuffix(path, "_test.go") || filepath.Ext(path) != ".go" && room != "deploy" {
				return err
			}
			text, err := os.ReadFile(path)
			all.Write(text)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	return all.String()
}

// quoted are the messages in the headings of a page.
func quoted(text string) []string {
	var out []string
	for _, found := range regexp.MustCompile("(?m)^### `([^`]+)`$").FindAllStringSubmatch(text, -1) {
		out = append(out, found[1])
	}

	return out
}

// TestTroubleshootingQuotesTheProduct checks that the headings quote messages of muster.
func TestTroubleshootingQuotesTheProduct(t *testing.T) {
	source := product(t)
	messages := quoted(page(t, "guides/troubleshooting.md"))
	for _, message := range messages {
		for part := range strings.SplitSeq(message, "…") {
			if part = strings.TrimSpace(part); !strings.Contains(source, strings.TrimSuffix(part, ":")) {
				t.Errorf("muster says nowhere %q, which is in %q", part, message)
			}
		}
	}
	if len(messages) < 40 {
		t.Errorf("only %d messages", len(messages))
	}
}

// TestProblemsLeadToTroubleshooting: each status that is a problem, each reason of a pending
// one, and each error of NATS and of signatures has a heading.
func TestProblemsLeadToTroubleshooting(t *testing.T) {
	messages := strings.Join(quoted(page(t, "guides/troubleshooting.md")), "\n")
	for _, status := range markdown.Rows(markdown.Section(page(t, "fleet/status.md"), "## Rollout status")) {
		if !slices.Contains([]string{"up-to-date", "overridden", "not-applicable"}, status) && !strings.Contains(messages, status) {
			t.Errorf("nothing about nodes that are %s", status)
		}
	}
	problems := regexp.MustCompile(`Err[A-Z]\w+ += errors\.New\("([^":]+)`)
	_, reasons, found := strings.Cut(page(t, "../fleet/status.go"), "\nfunc pending(")
	if !found {
		t.Fatal("no reasons of pending assignments")
	}
	all := regexp.MustCompile(`return (?:fmt\.Sprintf\()?"([^"%]+)`).FindAllStringSubmatch(reasons, -1)
	for _, file := range []string{"kvstore/store.go", "kvstore/format.go", "kvstore/connect/*.go", "kvstore/denial*.go", "kvstore/provision/provision.go", "kvstore/api*.go", "model/signed/policy.go"} {
		paths, err := filepath.Glob("../" + file)
		if err != nil || len(paths) == 0 {
			t.Fatal(file, err)
		}
		for _, path := range paths {
			all = append(all, problems.FindAllStringSubmatch(page(t, path), -1)...)
		}
	}
	for _, problem := range all {
		if !strings.Contains(messages, strings.TrimSpace(problem[1])) {
			t.Errorf("nothing about %q", problem[1])
		}
	}
	if len(all) < 18 {
		t.Errorf("only %d problems", len(all))
	}
}

// TestAlertsLeadToTheirGuide: each alert has a heading, and its link leads there.
func TestAlertsLeadToTheirGuide(t *testing.T) {
	const guide = "guides/monitoring-and-alerts.md"
	anchors := markdown.Anchors(page(t, guide))
	for rules, most := range map[string]int{"muster-fleet": 10, "muster": 11} {
		text := page(t, "../deploy/prometheus/"+rules+".rules.yaml")
		alerts := strings.Split(text, "- alert: ")[1:]
		if len(alerts) < most {
			t.Errorf("%s: only %d alerts", rules, len(alerts))
		}
		for _, alert := range alerts {
			name, _, _ := strings.Cut(alert, "\n")
			anchor := strings.ToLower(name)
			if !strings.Contains(alert, "runbook_url: https://github.com/musterfleet/muster/blob/main/docs/"+guide+"#"+anchor+"\n") || !slices.Contains(anchors, anchor) {
				t.Errorf("%s has no heading, or does not lead to it", name)
			}
		}
	}
}

// TestSizesWereMeasured: each figure of the tables is one of the pages that have the measurements.
func TestSizesWereMeasured(t *testing.T) {
	sizing := page(t, "guides/sizing.md")
	for section, source := range map[string]string{"## A node": "performance.md", "## The server": "performance.md", "## The dashboard": "performance.md", "## Disk": "fleet/storage.md"} {
		figures := regexp.MustCompile(`\b\d[\d.,]* ?(?:MB|GB|KB|ms|s|%)\b`).FindAllString(strings.ReplaceAll(markdown.Section(sizing, section), "2 GB", ""), -1)
		if len(figures) < 4 {
			t.Errorf("%s: only %q", section, figures)
		}
		for _, figure := range figures {
			number, _, _ := strings.Cut(strings.TrimSuffix(figure, "%"), " ")
			if !regexp.MustCompile(`\b` + regexp.QuoteMeta(number) + `\b`).MatchString(page(t, source)) {
				t.Errorf("%s: %s is not in %s", section, figure, source)
			}
		}
	}
}

// TestGlossaryIsSorted checks that the words are sorted and unique.
func TestGlossaryIsSorted(t *testing.T) {
	var words []string
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z ]+) \| [A-Z]`).FindAllStringSubmatch(page(t, "glossary.md"), -1) {
		words = append(words, row[1])
	}
	if len(words) < 30 || !slices.IsSorted(words) || len(slices.Compact(slices.Clone(words))) != len(words) {
		t.Errorf("%d words, in this order: %q", len(words), words)
	}
}
