from tigranet.reproduction.tables import TABLES


def test_the_papers_results_are_those_it_prints():
    printed = {
        "table2": ["99 94 78 ± 2.1", "100 97 93 ± 0.97", "100 100 55 ± 5", "100 98 50 ± 5", "98 97 94 ± 0.42"],
        "table3": ["44.3", "44.5", "83.8", "43.5", "67.1", "79.6"],
        "table4": ["45.1", "80.1", "87.3", "94.0", "95.1"],
    }
    for name, table in TABLES.items():
        assert [" ".join(row.reported) for row in table.rows if row.reported] == printed.get(name, [])
        assert len({(row.name, row.data) for row in table.rows}) == len(table.rows)


def test_an_ablation_changes_one_thing_per_row():
    rows = TABLES["ablation"].rows
    for data in ("mnist-rot", "mnist-012"):
        default, *variants, papers_own = (row for row in rows if row.data == data)
        assert (default.options, default.recipe, default.without) == ({}, {}, ())
        for row in variants:
            changes = [row.architecture != default.architecture, *row.options, *row.recipe, *row.without]
            assert len(list(filter(None, changes))) == 1, row
        assert papers_own.options == {"init": "paper", "ties": "strict"}
