// Package render writes a resolved manifest as YAML that muster applies again.
package render
