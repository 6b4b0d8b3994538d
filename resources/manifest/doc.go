// Package manifest turns a document into resources: it parses YAML or JSON with
// the place of every value, resolves hierarchical data and expressions, and
// decodes and validates what comes out. Whatever is wrong with a document is
// reported at once, each problem with its file, line, column and remedy, and
// nothing of the machine has been touched by then. What can only be known later
// (outputs of other resources, a file that a resource of the same manifest
// makes) waits in resource.Resource.Late for its turn.
//
// What is decided here, because the formats leave it open:
//
//   - A number that is not written in its shortest form (0644, 1.10) is text to
//     expressions, so that it comes out as it was written.
//   - Values of data see Facts and Environ; entries of hierarchy.order see Data
//     too, which is the base data with the external data over it.
//   - With merge first, the first match replaces the top-level keys that it has;
//     with deep, mappings are merged and everything else is replaced. In both the
//     first match in the order wins, and external data win over all, deeply.
//   - What an expression makes is secret when it names a secret, a mapping or list
//     that holds one, or all of the data; of a literal mapping each value by itself.
//   - A template is secret when its source does that, or cannot be judged.
//   - A resource that control excludes may hold expressions that fail when they
//     are evaluated, for they are often why it is excluded.
//   - A document is refused before it is parsed when it is larger than 16 MiB, and
//     at the first mistake or limit: a million values, 100 levels, or aliases that
//     expand to more than 200,000 values.
package manifest
