package plan

import "fmt"

// Count says how many there are of something: 1 pod, 2 pods.
func Count[N int | int32](n N, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
