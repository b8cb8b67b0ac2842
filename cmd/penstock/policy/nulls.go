package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// withoutNulls gives parameters without the members that are null, which a policy
// may not have, and their paths. In a list nothing can be left out.
func withoutNulls(parameters json.RawMessage) (kept json.RawMessage, dropped []string, err error) {
	if len(parameters) == 0 || string(parameters) == "null" {
		return nil, nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(parameters))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, nil, fmt.Errorf("spec.parameters: %w", err)
	}
	dropped, err = dropNulls(value, "spec.parameters")
	if err != nil || len(dropped) == 0 {
		return parameters, nil, err
	}
	kept, err = json.Marshal(value)
	return kept, dropped, err
}

func dropNulls(value any, at string) (dropped []string, err error) {
	switch value := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			below := at + "." + name
			if value[name] == nil {
				delete(value, name)
				dropped = append(dropped, below)
				continue
			}
			more, err := dropNulls(value[name], below)
			if err != nil {
				return nil, err
			}
			dropped = append(dropped, more...)
		}
	case []any:
		for i, item := range value {
			below := fmt.Sprintf("%s[%d]", at, i)
			if item == nil {
				return nil, fmt.Errorf("%s is null, which no policy may hold: remove it", below)
			}
			more, err := dropNulls(item, below)
			if err != nil {
				return nil, err
			}
			dropped = append(dropped, more...)
		}
	}
	return dropped, nil
}
