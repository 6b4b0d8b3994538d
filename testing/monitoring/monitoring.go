// Package monitoring compares the shipped alert rules and dashboard for Prometheus and Grafana with the
// served metrics.
package monitoring

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	common "github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"gopkg.in/yaml.v3"
)

// Alert is a rule of a file of rules.
type Alert struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         common.Duration   `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// Shipped lists the files that are checked together.
type Shipped struct{ Rules, Dashboard string }

// Series contains the labels of the served metrics by name.
type Series map[string][]map[string]string

// SeriesOf returns the series of a scrape.
func SeriesOf(families []*dto.MetricFamily) Series {
	out := Series{}
	for _, f := range families {
		for _, m := range f.Metric {
			series := map[string]string{}
			for _, l := range m.Label {
				series[l.GetName()] = l.GetValue()
			}
			out[f.GetName()] = append(out[f.GetName()], series)
		}
	}

	return out
}

// query is an expression, and the labels of its results that are shown.
type query struct {
	expr  string
	shown []string
}

// queries are the queries of the alerts and the dashboard, by place.
func (s Shipped) queries(t testing.TB) map[string]query {
	t.Helper()
	out := map[string]query{}
	for _, a := range s.Alerts(t) {
		q := query{expr: a.Expr}
		for _, text := range a.Annotations {
			for _, label := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(text, -1) {
				q.shown = append(q.shown, label[1])
			}
		}
		out["alert "+a.Alert] = q
	}
	text, err := os.ReadFile(s.Dashboard)
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	// What Grafana puts in the place of its variables.
	variables := strings.NewReplacer("$__rate_interval", "5m", "$__range", "6h", "$job", ".*", "$instance", ".*")
	for _, p := range dashboard.Panels {
		for i, target := range p.Targets {
			out[fmt.Sprint("panel ", p.Title, " ", i)] = query{expr: variables.Replace(target.Expr)}
		}
	}
	for _, v := range dashboard.Templating.List {
		if v.Definition == "" {
			continue
		}
		found := regexp.MustCompile(`^label_values\((.*), (job|instance)\)$`).FindStringSubmatch(v.Definition)
		if found == nil {
			t.Fatalf("variable %s: %q", v.Name, v.Definition)
		}
		out["variable "+v.Name] = query{expr: variables.Replace(found[1])}
	}

	return out
}

// Alerts returns the rules, in their order.
func (s Shipped) Alerts(t testing.TB) []Alert {
	t.Helper()
	text, err := os.ReadFile(s.Rules)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Groups []struct {
			Name  string
			Rules []Alert
		}
	}
	strict := yaml.NewDecoder(bytes.NewReader(text))
	strict.KnownFields(true)
	if err := strict.Decode(&file); err != nil || len(file.Groups) != 1 {
		t.Fatalf("%+v, %v", file, err)
	}
	for _, a := range file.Groups[0].Rules {
		if a.Labels["severity"] == "" || a.Annotations["summary"] == "" || a.Annotations["description"] == "" {
			t.Errorf("alert %+v is incomplete", a)
		}
	}

	return file.Groups[0].Rules
}

// Check parses each query as Prometheus does. Each selector must match a series
// that is served, and each label must be one of its metrics, or of the scrape.
func (s Shipped) Check(t testing.TB, served Series) {
	t.Helper()
	for where, q := range s.queries(t) {
		expr, err := parser.ParseExpr(q.expr)
		if err != nil {
			t.Errorf("%s: %q: %v", where, q.expr, err)
			continue
		}
		known := map[string]bool{"job": true, "instance": true}
		named := q.shown
		parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
			switch n := node.(type) {
			case *parser.VectorSelector:
				series, ok := match(served[n.Name], n.LabelMatchers)
				if !ok && n.Name != "up" { // which is Prometheus' own
					t.Errorf("%s: %s matches nothing that is served: %v", where, n, served[n.Name])
				}
				for label := range series {
					known[label] = true
				}
			case *parser.AggregateExpr:
				named = append(named, n.Grouping...)
			case *parser.BinaryExpr:
				if n.VectorMatching != nil {
					named = slices.Concat(named, n.VectorMatching.MatchingLabels, n.VectorMatching.Include)
				}
			}
			return nil
		})
		for _, label := range named {
			if !known[label] {
				t.Errorf("%s: no metric of %q has the label %s", where, q.expr, label)
			}
		}
	}
}

// match returns the first series that matches, but for the labels of the scrape.
func match(all []map[string]string, matchers []*labels.Matcher) (map[string]string, bool) {
	for _, series := range all {
		if !slices.ContainsFunc(matchers, func(m *labels.Matcher) bool {
			return !slices.Contains([]string{"__name__", "job", "instance"}, m.Name) && !m.Matches(series[m.Name])
		}) {
			return series, true
		}
	}

	return nil, false
}
