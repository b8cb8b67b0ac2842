package gpu_mig_profiles_test

import data.gpu_mig_profiles

fixes(name) := found if {
	found := {v.fix | some v in gpu_mig_profiles.violation} with input as {
		"object": {
			"apiVersion": "v1",
			"kind": "Pod",
			"spec": {"containers": [{"name": "main", "resources": {"limits": {name: 1}}}]},
		},
		"parameters": {"profiles": ["1g.5gb", "1g.10gb", "3g.20gb"]},
	}
}

test_profiles_and_their_variants if {
	every suffix in ["1g.5gb", "1g.10gb.me", "1g.5gb.shared", "1g.10gb.me.all", "3g.20gb-me"] {
		fixes(concat("", ["nvidia.com/mig-", suffix])) == set()
	}
	fixes("nvidia.com/gpu") == set()
}

test_the_fix_names_profiles_of_as_many_slices if {
	fixes("nvidia.com/mig-1g.6gb") == {"use one of 1g.5gb, 1g.10gb"}
	fixes("nvidia.com/mig-5g.20gb") == {"use one of 3g.20gb"}
	fixes("nvidia.com/mig-5g.30gb") == {"use one of 1g.5gb, 1g.10gb, 3g.20gb"}
	fixes("nvidia.com/mig-") == {"use one of 1g.5gb, 1g.10gb, 3g.20gb"}
}

# One test for each member.
test_the_fix_names_what_is_meant[name] if {
	some name, meant in {
		"1g.5g": "1g.5gb",
		"1g.5": "1g.5gb",
		"1g5gb": "1g.5gb",
		"1gb.5gb": "1g.5gb",
		"1G.10GB": "1g.10gb",
		"1g-10gb": "1g.10gb",
		"10gb.1g": "1g.10gb",
		"3g.20gib": "3g.20gb",
		"3g.20g.me": "3g.20gb.me",
		"1g.5gb.shard": "1g.5gb",
	}
	fixes(concat("", ["nvidia.com/mig-", name])) == {sprintf("did you mean nvidia.com/mig-%s?", [meant])}
}

test_what_is_like_no_profile if {
	fixes("nvidia.com/mig-large") == {"use one of 1g.5gb, 1g.10gb, 3g.20gb"}
}
