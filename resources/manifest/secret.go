package manifest

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"strconv"

	"github.com/musterfleet/muster/model"
	"github.com/musterfleet/muster/resources/resource"
	"github.com/musterfleet/muster/resources/template"
)

// reveal returns a tree with the text that each of its secrets stands for: the
// tree itself when it has none.
func reveal(v any, text func(model.Secret) string) any {
	if !template.Holds(v) {
		return v
	}
	switch v := v.(type) {
	case model.Secret:
		return text(v)
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, item := range v {
			out[k] = reveal(item, text)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, item := range v {
			out[i] = reveal(item, text)
		}
		return out
	default:
		return v
	}
}

// markAll marks every scalar of v.
func markAll(v *resource.Value) {
	v.Secret = v.IsScalar()
	for i := range v.Items {
		markAll(&v.Items[i])
	}
	for i := range v.Entries {
		markAll(&v.Entries[i].Value)
	}
}

// tokens are texts that stand for secrets in a rendered list of resources.
type tokens struct {
	nonce   string
	secrets []model.Secret
}

func newTokens() *tokens { return &tokens{nonce: rand.Text()} }

// hide returns the token of a secret.
func (t *tokens) hide(s model.Secret) string {
	t.secrets = append(t.secrets, s)

	return fmt.Sprintf("%s-%d-", t.nonce, len(t.secrets)-1)
}

// reveal puts the secrets of tokens into a text.
func (t *tokens) reveal(text string) string {
	return regexp.MustCompile(t.nonce+`-(\d+)-`).ReplaceAllStringFunc(text, func(token string) string {
		i, _ := strconv.Atoi(token[len(t.nonce)+1 : len(token)-1])
		return t.secrets[i].Reveal()
	})
}
