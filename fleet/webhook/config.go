// Package webhook sends reports of nodes as CloudEvents over HTTP, signed by the Standard Webhooks specification.
package webhook

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/document"
)

// File is the file of webhooks.
type File struct {
	Webhooks []Hook `json:"webhooks"`
}

// Hook is a receiver of reports. Each list that is not empty selects reports.
type Hook struct {
	Name string `json:"name"`
	URL  string `json:"url"`
	// SecretFile is the file of the signing secret, "whsec_" and base64 of 24 to 64 bytes.
	SecretFile string `json:"secret_file"`
	// Kinds and Outcomes are words of muster fleet reports; the outcome model.Rejected is read as model.OutcomeRefused.
	// Manifests are names, Nodes are ids.
	Kinds     []string `json:"kinds"`
	Outcomes  []string `json:"outcomes"`
	Causes    []string `json:"causes"`
	Nodes     []string `json:"nodes"`
	Manifests []string `json:"manifests"`
}

// The bounds of the file.
const (
	maxFile  = 1 << 20
	maxHooks = 50
	maxName  = 32
)

// Parse reads the file of webhooks. It returns all errors as model.Problems with their positions.
func Parse(name string, data []byte) ([]Hook, error) {
	var f File
	places, problems := document.DecodeInto(name, data, maxFile, &f)
	add := func(path string, err error) {
		if err != nil {
			at, ok := places[path]
			if !ok {
				at = model.Position{File: name}
			}
			problems = append(problems, model.Problem{Pos: at, Property: path, Message: err.Error()})
		}
	}
	if problems == nil && (len(f.Webhooks) == 0 || len(f.Webhooks) > maxHooks) {
		add("webhooks", fmt.Errorf("`webhooks` must have 1 to %d items, not %d", maxHooks, len(f.Webhooks)))
	}
	seen := map[string]bool{}
	for i, h := range f.Webhooks {
		at := fmt.Sprintf("webhooks.%d", i)
		h.check(func(key string, err error) {
			if _, ok := places[at+"."+key]; !ok {
				add(at, err)
				return
			}
			add(at+"."+key, err)
		})
		if seen[h.Name] {
			add(at+".name", fmt.Errorf("the name %s is not unique: muster records sent reports by the name", h.Name))
		}
		seen[h.Name] = true
	}

	for _, h := range f.Webhooks {
		for i, word := range h.Outcomes {
			h.Outcomes[i] = string(model.OutcomeNamed(word))
		}
	}

	return f.Webhooks, problems.Sorted().Err()
}

// check adds errors by key.
func (h Hook) check(add func(key string, err error)) {
	if !model.IsToken(h.Name) || len(h.Name) > maxName {
		add("name", fmt.Errorf("`name` must be one word of letters, digits, - and _, at most %d, not %q", maxName, h.Name))
	}
	add("url", checkURL(h.URL))
	if h.SecretFile == "" {
		add("secret_file", errors.New("`secret_file` is missing: reports are signed, so that who receives them can tell that they are yours"))
	}
	for key, words := range map[string]struct{ given, known []string }{
		"kinds": {h.Kinds, model.Kinds()}, "outcomes": {h.Outcomes, model.ReportOutcomes()}, "causes": {h.Causes, model.ReportCauses()},
	} {
		for _, word := range words.given {
			if !slices.Contains(words.known, word) {
				add(key, fmt.Errorf("`%s` has %q, and can have %s%s", key, word, strings.Join(words.known, ", "), meant(word, words.known)))
			}
		}
	}
	for key, names := range map[string][]string{"nodes": h.Nodes, "manifests": h.Manifests} {
		for _, name := range names {
			if !model.IsToken(name) {
				add(key, fmt.Errorf("`%s` must be words of letters, digits, - and _, not %q", key, name))
			}
		}
	}
}

func meant(word string, known []string) string {
	if hint := document.DidYouMean(word, known); hint != "" {
		return " (" + hint + ")"
	}

	return ""
}

// checkURL returns an error for an unusable URL. Reports are confidential, so only loopback is permitted without TLS.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return errors.New("`url` is missing")
	case err != nil || u.Host == "":
		return errors.New("`url` must be an absolute URL, such as https://example.net/muster") // the error would show it
	case u.User != nil:
		return errors.New("`url` must have no user and password: they would be in logs")
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	default:
		return errors.New("`url` must begin with https://; http:// is for loopback only, because reports are confidential")
	}
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)

	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Matches reports whether a report must be sent.
func (h Hook) Matches(r model.Report) bool {
	has := func(all []string, word string) bool { return len(all) == 0 || slices.Contains(all, word) }
	_, name, _ := model.SplitKey(r.Manifest)

	return has(h.Kinds, r.Kind) && has(h.Outcomes, string(r.Outcome)) && has(h.Causes, string(r.Cause)) && has(h.Nodes, r.Node) && has(h.Manifests, name)
}
