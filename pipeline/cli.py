"""The command line: what can be asked, and nothing else. Each command gathers its options and calls one function.

No heavy import at the top: `veedor --help` answers in under half a second. Exit codes: `pipeline.exits`.
"""

import re
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from pipeline import options as o
from pipeline.answering import Answering
from pipeline.console import progress_shown, stdout
from pipeline.exits import FAIL, code_of_verdict
from pipeline.policy_commands import policy_app
from veedor import __version__
from veedor.errors import UsageError

app = typer.Typer(
    cls=Answering,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(policy_app, name="policy")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"veedor {__version__}")
        raise typer.Exit


@app.callback()
def veedor(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say the version.")
    ] = False,
) -> None:
    """Audit text classifiers for demographic-term bias, and decide whether a release may pass.

    Exit codes: 0 PASS, 1 FAIL, 2 bad usage, 3 INCONCLUSIVE or NOT_TESTED, 4 model, 5 evaluation set, 6 MLflow,
    70 a fault of ours.
    """


@app.command()
def audit(  # noqa: PLR0913, PLR0917  # one parameter an option, as Typer reads them
    model: o.Model,
    evaluation_set: o.EvaluationSetName = None,
    target: o.Target = None,
    settings: o.SettingsFile = None,
    policy: o.PolicyFile = None,
    methods: o.Methods = None,
    out: o.Out = None,
    language: o.Languages = None,
    limit: o.Limit = None,
    seed: o.Seed = None,
    tracking_uri: o.TrackingUri = None,
    head: o.Head = None,
    resume: o.Resume = False,
    trust_pickle: o.TrustPickle = False,
    no_log: o.NoLog = False,
) -> None:
    """Audit a model: score, explain, measure, judge, report, log.

    \b
    veedor audit models:/toxicity@candidate --target toxic --policy policy.yaml
    veedor audit path/to/model --evaluation-set my_texts.csv --language en --no-log
    veedor audit models:/toxicity/3 --out audits/toxicity-3 --resume
    """
    given = {
        "evaluation_set": evaluation_set,
        "target": target,
        "methods": o.names(methods),
        "languages": o.languages(language),
        "limit": limit,
        "seed": seed,
        "head": head,
        "trust_pickle": trust_pickle or None,
    }
    chosen = o.settings_of(settings, policy, given)
    folder = Path(out) if out else default_folder(model, resume=resume)
    from pipeline.run import run_audit
    from pipeline.summary import print_audit

    with progress_shown() as progress:
        result = run_audit(
            model, chosen, folder, tracking_uri=tracking_uri, resume=resume, log=not no_log, progress=progress
        )
    print_audit(result)
    raise typer.Exit(result.exit_code)


def default_folder(model: str, *, resume: bool) -> Path:
    """audits/MODEL-TIME, or with `resume` the newest audit of this model."""
    name = model if "/" not in model.rstrip("/") or ":" in model else model.rstrip("/").rpartition("/")[2]
    slug = re.sub(r"[^\w.-]+", "-", name.removeprefix("models:/").removeprefix("runs:/")).strip("-.") or "model"
    if not resume:
        return Path("audits") / f"{slug}-{datetime.now().strftime('%Y%m%d-%H%M%S')}"
    earlier = sorted(Path("audits").glob(f"{slug}-????????-??????"))
    if not earlier:
        raise UsageError(f"there is no earlier audit audits/{slug}-… to resume; name its folder with --out")
    return earlier[-1]


@app.command()
def demo(
    out: Annotated[str, typer.Option("--out", help="Where to put the demonstration.", metavar="DIR")] = "demo",
    language: o.Languages = None,
    seed: o.Seed = None,
    tracking_uri: o.TrackingUri = None,
) -> None:
    """Train a tiny biased classifier, register it, audit it: exit 0 when the planted bias was found, and only it."""
    from pipeline.demo import demo as run_demo
    from pipeline.summary import print_audit

    with progress_shown() as progress:
        found = run_demo(
            Path(out),
            tracking_uri=tracking_uri,
            seed=seed or 0,
            languages=o.languages(language) or ("en", "es"),
            progress=progress,
        )
    print_audit(found.audit)
    console = stdout()
    console.print(f"planted   {found.planted}, {found.effect:+.2f} logits")
    console.print(
        f"found     {', '.join(found.found) or 'nothing'}: {'just that' if found.ok else 'NOT what was planted'}"
    )
    raise typer.Exit(0 if found.ok else FAIL)


@app.command()
def validate(
    evaluation_set: Annotated[str, typer.Argument(help="A built-in set or your file.", metavar="EVALUATION_SET")],
    show_swaps: Annotated[
        bool, typer.Option("--show-swaps", help="Show rows with the words put in their place.")
    ] = False,
    set_language: Annotated[
        str | None, typer.Option("--set-language", help="Language of the texts.", metavar="CODE", show_default=False)
    ] = None,
    limit: o.Limit = None,
) -> None:
    """Check an evaluation set without a model; exit 5 where a critical check fails.

    \b
    veedor validate my_texts.csv --show-swaps
    """
    from pipeline.look import print_set

    chosen = o.settings_of(None, None, {"evaluation_set": evaluation_set, "set_language": set_language, "limit": limit})
    print_set(chosen, swaps=show_swaps)


@app.command()
def explain(  # noqa: PLR0913, PLR0917  # one parameter an option, as Typer reads them
    model: o.Model,
    text: Annotated[str, typer.Argument(help="The text to explain; - reads standard input.", metavar="TEXT")],
    method: Annotated[
        str | None,
        typer.Option(
            "--method",
            help="One or several with commas between, or all; `veedor methods` lists them. By default "
            "integrated_gradients.",
            metavar="A,B|all",
            show_default=False,
        ),
    ] = None,
    target: o.Target = None,
    tokens: Annotated[bool, typer.Option("--tokens", help="Show sub-word tokens in place of words.")] = False,
    html: Annotated[
        str | None,
        typer.Option("--html", help="Write an interactive page, too.", metavar="FILE", show_default=False),
    ] = None,
    language: Annotated[
        str, typer.Option("--language", help="Language the page opens in, en or es.", metavar="CODE")
    ] = "en",
    audit: Annotated[
        str | None,
        typer.Option(
            "--audit",
            help="An audit of this model: says which methods it marks unreliable.",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    head: o.Head = None,
    tracking_uri: o.TrackingUri = None,
    trust_pickle: o.TrustPickle = False,
) -> None:
    """Say which words of one text a method holds responsible.

    \b
    veedor explain models:/toxicity/3 "I am a gay man." --method rollout,occlusion --html why.html
    """
    from pipeline.explain import Shown, explain_text

    given = {"target": target, "head": head, "trust_pickle": trust_pickle or None, "languages": (language,)}
    chosen = o.settings_of(None, None, given)
    shown = Shown(
        methods=o.names(method),
        tokens=tokens,
        html=Path(html) if html else None,
        language=language,
        audit=o.audit_folder(audit) if audit else None,
    )
    explain_text(model, text, chosen, shown, tracking_uri=tracking_uri)


@app.command()
def benchmark(  # noqa: PLR0913, PLR0917  # one parameter an option, as Typer reads them
    model: o.Model,
    texts: Annotated[
        str,
        typer.Option(
            "--texts",
            help="Texts like those the model will read: .csv, .jsonl or .parquet with a column text, or .txt with one "
            "text a line.",
            metavar="FILE",
        ),
    ],
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            help="Methods with commas between; by default all that this installation has and the model allows.",
            metavar="all|A,B",
            show_default=False,
        ),
    ] = None,
    target: o.Target = None,
    control_model: Annotated[
        str | None,
        typer.Option(
            "--control-model",
            help="The same architecture trained on permuted labels: scores that stay alike do not come from learning.",
            metavar="MODEL",
            show_default=False,
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option("--limit", help="Texts drawn from the file by the seed; 0: all.", metavar="N", min=0)
    ] = 100,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            help="Folder for benchmark.html, .svg, .png, .csv and .json; without it nothing is written.",
            metavar="DIR",
            show_default=False,
        ),
    ] = None,
    seed: o.Seed = None,
    settings: o.SettingsFile = None,
    head: o.Head = None,
    tracking_uri: o.TrackingUri = None,
    trust_pickle: o.TrustPickle = False,
) -> None:
    """Find out how faithful each attribution method is on a model, beside random rankings.

    For every method: how far the model's answer falls without the words it ranks first (comprehensiveness), how little
    is lost with these words alone (sufficiency), whether its scores foretell what removals do (infidelity, tau with
    leave-one-out), hold still when the input hardly moves (max-sensitivity), and vanish when the model's weights are
    drawn anew, as they should. Words are masked and deleted; what beats chance under one only is not to be trusted.
    With all methods a text costs some thousand forward passes: begin with --limit 50.

    \b
    veedor benchmark models:/toxicity/3 --texts comments.csv --target toxic --out benchmarks/toxicity-3
    veedor benchmark path/to/model --texts lines.txt --methods rollout,integrated_gradients,occlusion --limit 50
    """
    from pipeline.benchmark import Asked, run_benchmark
    from pipeline.benchmark_tables import print_benchmark

    given = {"target": target, "seed": seed, "head": head, "trust_pickle": trust_pickle or None}
    chosen = o.settings_of(settings, None, given)
    folder = Path(out) if out else None
    asked = Asked(Path(texts), o.names(methods), limit, control_model or None, folder, tracking_uri)
    with progress_shown() as progress:
        found = run_benchmark(model, asked, chosen, progress)
    print_benchmark(found, folder)


@app.command()
def gate(
    audit: o.Audit,
    policy: o.PolicyFile = None,
    write: Annotated[
        bool, typer.Option("--write", help="Keep the new verdict in the folder and render again.")
    ] = False,
) -> None:
    """Decide again on stored evidence, no model needed. Writes nothing unless --write.

    \b
    veedor gate audits/toxicity-3 --policy stricter.yaml
    """
    from pipeline.gate import judge_again, write_verdict
    from pipeline.summary import print_verdict, record_of

    folder = o.audit_folder(audit)
    verdict, settings = judge_again(folder, policy)
    print_verdict(verdict, record_of(folder, "decisions"))
    if write:
        from pipeline.run import render

        write_verdict(folder, verdict, settings)
        render(folder, settings)
    raise typer.Exit(code_of_verdict(verdict.overall, verdict.policy))


@app.command()
def report(audit: o.Audit, language: o.Languages = None) -> None:
    """Render the reports again from stored evidence.

    \b
    veedor report audits/toxicity-3 --language es
    """
    from pipeline.run import render
    from pipeline.summary import shown
    from veedor.settings import read_settings

    folder = o.audit_folder(audit)
    stored = read_settings(folder / "settings.yaml").model_dump()
    settings = o.settings_of(None, None, stored | {"languages": o.languages(language) or stored["languages"]})
    with progress_shown() as progress:
        written = render(folder, settings, progress=progress)
    for name in sorted(written.files):
        stdout().print(shown(folder / name))


@app.command()
def log(
    audit: o.Audit,
    tracking_uri: o.TrackingUri = None,
    again: Annotated[bool, typer.Option("--again", help="Log it even though it was logged before.")] = False,
) -> None:
    """Log a finished audit folder to MLflow, for instance after a server was gone.

    \b
    veedor log audits/toxicity-3 --tracking-uri http://localhost:5000
    """
    from pipeline.store import log_audit
    from pipeline.tracking import tracking_uri_for

    folder = o.audit_folder(audit)
    logged = log_audit(folder, tracking_uri=tracking_uri_for(folder, tracking_uri), again=again)
    how = "was logged already (--again logs it once more)" if logged.already else "logged"
    stdout().print(f"{how}: run {logged.run_id} in {logged.tracking_uri}")


@app.command(hidden=True)
def step(  # noqa: PLR0913, PLR0917  # one parameter an option, as Typer reads them
    name: Annotated[
        str, typer.Argument(help="collect, predict, attribute, challenge, measure, judge or publish.", metavar="NAME")
    ],
    out: Annotated[str, typer.Option("--out", help="The audit's folder.", metavar="DIR")],
    model: Annotated[str | None, typer.Option("--model", help=o.FORMS, metavar="MODEL", callback=o.nonempty)] = None,
    evaluation_set: o.EvaluationSetName = None,
    target: o.Target = None,
    settings: o.SettingsFile = None,
    policy: o.PolicyFile = None,
    methods: o.Methods = None,
    tracking_uri: o.TrackingUri = None,
) -> None:
    """Run one step on an audit folder: `mlflow run . -e STEP` calls this."""
    from pipeline.run import run_step

    kept = Path(out) / "settings.yaml"
    given = {"evaluation_set": evaluation_set, "target": target, "methods": o.names(methods)}
    chosen = o.settings_of(settings or (str(kept) if kept.is_file() else None), policy, given)
    with progress_shown() as progress:
        where = run_step(name, model, chosen, Path(out), tracking_uri=tracking_uri, progress=progress)
    stdout().print(str(where))


@app.command()
def methods() -> None:
    """List the attribution methods of this installation."""
    from pipeline.look import print_methods

    print_methods()


@app.command()
def metrics() -> None:
    """List what is measured."""
    from pipeline.look import print_metrics

    print_metrics()


@app.command("evaluation-sets")
def evaluation_sets() -> None:
    """List the built-in evaluation sets and the file formats that are recognised."""
    from pipeline.look import print_sets

    print_sets()


def main() -> None:
    """Run the command line and leave with its exit code."""
    app(prog_name="veedor")
