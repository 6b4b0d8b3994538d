// Package assignments is the bucket of assignments from the operator's side: what
// puts, deletes and lists them, each change together with the index of its family.
package assignments
