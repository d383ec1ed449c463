/** What each script begins with: the first error ends it, and nobody is there to watch a progress bar. */
const PROLOGUE = `$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'
try { [Console]::OutputEncoding = New-Object System.Text.UTF8Encoding $false } catch { }
`;

/** Windows PowerShell reads a file without it in the code page of the system. */
const BYTE_ORDER_MARK = '\uFEFF';

const POWERSHELL = 'powershell.exe -NoLogo -NoProfile -NonInteractive -ExecutionPolicy Bypass';

/** What {@link powershellScript} is made of. */
export interface PowershellScript {
  /** Commands, or the call of a script (`./setup.ps1 NAME`). */
  readonly run: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Where it runs, below the home directory. */
  readonly directory: string;
}

/**
 * The content of a `.ps1` file that runs a step. It ends with 1 at the first error that PowerShell itself has, else
 * with the exit code of the last program or script that was run, else with 0.
 */
export function powershellScript({ run, environment, directory }: PowershellScript): string {
  const variables = Object.entries(environment).map(
    ([name, value]) =>
      `Set-Item -LiteralPath ${powershellLiteral(`Env:${name}`)} -Value ${powershellLiteral(value)}\n`,
  );
  const where = `Set-Location -LiteralPath ${powershellLiteral(directory)}\n`;
  const end = String.raw`if (Test-Path -LiteralPath Variable:\LASTEXITCODE) { exit $LASTEXITCODE }`;
  return `${BYTE_ORDER_MARK}${PROLOGUE}${variables.join('')}${where}${run}\n${end}\n`;
}

/** The command line, for whatever shell, that runs a `.ps1` file below the home directory. */
export function powershellFile(path: string): string {
  return `${POWERSHELL} -File "${path.replaceAll('/', '\\')}"`;
}

/** The command line, for whatever shell, that runs a short script which is in no file; `cmd.exe` takes 8,191 characters. */
export function powershellCommand(script: string): string {
  const encoded = Buffer.from(script, 'utf16le').toString('base64');
  // Without -OutputFormat errors would come as XML, as if for another PowerShell.
  return `${POWERSHELL} -OutputFormat Text -EncodedCommand ${encoded}`;
}

/** A string as PowerShell reads it, whatever is in it: typographic quotes end a string there as well as straight ones. */
export function powershellLiteral(text: string): string {
  return `'${text.replaceAll(/['\u2018-\u201B]/g, '$&$&')}'`;
}
