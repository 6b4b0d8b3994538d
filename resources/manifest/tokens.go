package manifest

import (
	"crypto/rand"
	"fmt"
	"regexp"
	"strconv"

	"github.com/musterfleet/muster/model"
)

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
