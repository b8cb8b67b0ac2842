// Package secrets finds secrets in texts that people write: arguments, commands,
// variables, headers, addresses and files. What explanations and the decision log
// hide is what it finds.
//
//   - name.go: which names say that what follows them is a secret;
//   - text.go: the scan of a text, from a name to its value, as a shell reads it;
//     value.go, what may be assigned to a name beside one word: lists, blocks, headers;
//     address.go, passwords in addresses, and the pieces of a secret that may stand
//     elsewhere.
//
// It is pure, and the time that it takes grows with the text.
package secrets
