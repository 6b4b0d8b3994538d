package access

import (
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
)

const (
	// maxCalled is how many bytes of what a user is called are shown.
	maxCalled = 40
	// maxSubject is how long a subject may be, as OpenID Connect says; one of maxShown bytes is shown as it is.
	maxSubject = 255
	maxShown   = 40
	// hashed begins what is shown of others.
	hashed = "sha256:"
)

// called returns what a user of a provider is called there, empty for nothing. They choose that, mostly, and
// others may be called the same.
func called(claims map[string]any) string {
	name, _ := claims["preferred_username"].(string)
	if verified, _ := claims["email_verified"].(bool); name == "" && verified {
		name, _ = claims["email"].(string)
	}
	// Without parentheses no name ends like that of another subject.
	name = strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) || r == '(' || r == ')' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, ""))

	return strings.TrimSpace(strings.ToValidUTF8(name[:min(len(name), maxCalled)], ""))
}

// nameOf returns the name of a user of a provider: what they are called, and their subject, which nobody else
// has. It is never the name of a token.
func nameOf(called, subject string) string {
	if called == "" {
		return "oidc " + shown(subject)
	}

	return called + " (oidc " + shown(subject) + ")"
}

// shown returns what is shown of a subject: a digest where it is long, or could be read as something else.
func shown(subject string) string {
	odd := func(r rune) bool { return r <= ' ' || r > '~' || r == '(' || r == ')' }
	if len(subject) <= maxShown && !strings.HasPrefix(subject, hashed) && !strings.ContainsFunc(subject, odd) {
		return subject
	}
	sum := sha256.Sum256([]byte(subject))

	return hashed + base64.RawURLEncoding.EncodeToString(sum[:12])
}
