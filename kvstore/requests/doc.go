// Package requests is what nodes are asked: live requests and their answers, and
// the commands that wait for a node.
package requests
