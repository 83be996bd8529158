from tigranet.reproduction.tables import TABLES
from tigranet.workflows.paper_results import PAPER_RESULTS


def test_they_are_the_results_that_the_paper_prints():
    assert {name: (result.table, result.test, result.moved) for name, result in PAPER_RESULTS.items()} == {
        "mnist-012": ("Table 2", "-", "94 ± 0.42"),
        "mnist-rot": ("Table 3", "-", "83.8"),
        "mnist-trans": ("Table 3", "-", "79.6"),
        "eth80": ("Table 4", "95.1", "-"),
    }
    assert (PAPER_RESULTS["mnist-012"].train, PAPER_RESULTS["mnist-012"].validation) == ("98", "97")


def test_the_tables_take_them_from_here():
    for name, table in TABLES.items():
        for experiment in table.rows:
            if experiment.method == "TIGraNet" and experiment.reported:
                result = PAPER_RESULTS[experiment.data]
                assert experiment.reported == tuple(getattr(result, column) for column in table.columns)
                assert result.table == name.replace("table", "Table ")
