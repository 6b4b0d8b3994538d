package kvstore

import (
	"encoding/base64"
	"strings"

	"github.com/musterfleet/muster/model"
)

// Verbs of requests to nodes. A verb is the token after the prefix in the subject.
const (
	VerbEnsure  = "ensure"
	VerbRun     = "run"
	VerbPreview = "preview"
	VerbStatus  = "status"
	VerbFacts   = "facts"
	VerbPing    = "ping"
)

// Verbs returns every verb.
func Verbs() []string {
	return []string{VerbEnsure, VerbRun, VerbPreview, VerbStatus, VerbFacts, VerbPing}
}

// RequesterVerbs returns the verbs that users other than administrators may be permitted to use. The
// account of requesters forwards no other verb.
func RequesterVerbs() []string { return []string{VerbRun, VerbPreview} }

// NodeState returns the subject of a node's state.
func (n Names) NodeState(node string) string { return KVSubject(n.Nodes(), node+".state") }

// NodeFacts returns the subject of a node's facts.
func (n Names) NodeFacts(node string) string { return KVSubject(n.Nodes(), node+".facts") }

// NodeInventory returns the subject of a node's inventory.
func (n Names) NodeInventory(node string) string { return KVSubject(n.Nodes(), node+".inventory") }

// encodedToken is the prefix of an encoded id.
const encodedToken = "="

// Token returns an id as a single subject token.
func Token(id string) string {
	if model.IsToken(id) {
		return id
	}

	return encodedToken + base64.RawURLEncoding.EncodeToString([]byte(id))
}

// TokenID is the inverse of Token. ok is false for a token that Token never returns.
func TokenID(token string) (id string, ok bool) {
	encoded, is := strings.CutPrefix(token, encodedToken)
	if !is {
		return token, model.IsToken(token)
	}
	data, err := base64.RawURLEncoding.DecodeString(encoded)

	return string(data), err == nil && Token(string(data)) == token
}
