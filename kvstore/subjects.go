package kvstore

import (
	"encoding/base64"
	"strings"

	"github.com/musterfleet/muster/model"
)

// What a node can be asked, the token of the subject after the prefix.
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

// RequesterVerbs returns those that a user who is no administrator may be permitted to ask all
// nodes: no other is passed on from the account of requesters.
func RequesterVerbs() []string { return []string{VerbRun, VerbPreview} }

// NodeState is the subject of the key of a node's state.
func (n Names) NodeState(node string) string { return KVSubject(n.Nodes(), node+".state") }

// NodeFacts is the subject of the key of a node's facts.
func (n Names) NodeFacts(node string) string { return KVSubject(n.Nodes(), node+".facts") }

// NodeInventory is the subject of the key of a node's inventory.
func (n Names) NodeInventory(node string) string { return KVSubject(n.Nodes(), node+".inventory") }

// encodedToken begins the token of an id that is none itself.
const encodedToken = "="

// Token returns an id as one token of a subject.
func Token(id string) string {
	if model.IsToken(id) {
		return id
	}

	return encodedToken + base64.RawURLEncoding.EncodeToString([]byte(id))
}

// TokenID is the inverse of Token; ok is false for what Token does not return.
func TokenID(token string) (id string, ok bool) {
	encoded, is := strings.CutPrefix(token, encodedToken)
	if !is {
		return token, model.IsToken(token)
	}
	data, err := base64.RawURLEncoding.DecodeString(encoded)

	return string(data), err == nil && Token(string(data)) == token
}
