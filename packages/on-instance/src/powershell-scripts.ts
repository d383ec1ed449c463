import type { ScriptLanguage } from './script-language.ts';

/** First part of a command line that runs Windows PowerShell, for any shell. */
const POWERSHELL = 'powershell -NoLogo -NoProfile -NonInteractive -ExecutionPolicy Bypass';

/**
 * Returns a command line, for any shell, that runs a short script without a file. `cmd.exe` accepts 8,191 characters.
 */
export function powershellCommand(command: string): string {
  const encoded = Buffer.from(command, 'utf16le').toString('base64');
  // Without -OutputFormat, errors are written as XML, for another PowerShell.
  return `${POWERSHELL} -OutputFormat Text -EncodedCommand ${encoded}`;
}

/** Quotes any text as a PowerShell string, in which typographic quotes also end a string. */
export function powershellLiteral(text: string): string {
  return `'${text.replaceAll(/['\u2018-\u201B]/g, '$&$&')}'`;
}

const SCRIPT_DIRECTORY = String.raw`C:\nodepool-scripts`;

/**
 * First lines of each script. Windows PowerShell reads a file without a byte order mark in the regional encoding.
 * Without a console, the output encoding cannot be set. The script removes its file, because a step may contain
 * secrets. PowerShell reads it completely before it runs.
 */
const BEGINNING = `\uFEFF$ErrorActionPreference = 'Stop'
$ProgressPreference = 'SilentlyContinue'
try { [Console]::OutputEncoding = New-Object System.Text.UTF8Encoding $false } catch {}
Remove-Item -LiteralPath $PSCommandPath
`;

const PREPARE = `${BEGINNING}
New-Item -ItemType Directory -Force -Path .nodepool-builder\\scripts | Out-Null
if (Test-Path -LiteralPath ${SCRIPT_DIRECTORY}) { Remove-Item -Recurse -Force -LiteralPath ${SCRIPT_DIRECTORY} }
Move-Item -LiteralPath .nodepool-builder\\scripts -Destination ${SCRIPT_DIRECTORY}
`;

const REMOVE_WORK = 'Remove-Item -Recurse -Force -LiteralPath .nodepool-builder\n';

/** Key files of Windows' OpenSSH. Those of administrators are not in their home directories. */
const KEY_FILES = [
  String.raw`$env:ProgramData\ssh\administrators_authorized_keys`,
  String.raw`$env:USERPROFILE\.ssh\authorized_keys`,
];

const CLEAN = `${BEGINNING}
Get-EventLog -LogName * | ForEach-Object { Clear-EventLog -LogName $_.Log }
$history = "$env:APPDATA\\Microsoft\\Windows\\PowerShell\\PSReadLine\\ConsoleHost_history.txt"
if (Test-Path -LiteralPath $history) { Remove-Item -LiteralPath $history }
if (-not (Get-ChildItem -LiteralPath ${SCRIPT_DIRECTORY})) { Remove-Item -LiteralPath ${SCRIPT_DIRECTORY} }
${REMOVE_WORK}`;

/** Sysprep exits at once if it cannot start, with the reason in its log. */
const SYSPREP = `${BEGINNING}${REMOVE_WORK}$sysprep = "$env:SystemRoot\\System32\\Sysprep"
$process = Start-Process -Wait -PassThru -FilePath "$sysprep\\sysprep.exe" -ArgumentList '/generalize', '/oobe', '/shutdown', '/quiet'
if ($process.ExitCode -ne 0) { Get-Content -Tail 20 -LiteralPath "$sysprep\\Panther\\setupact.log" }
exit $process.ExitCode
`;

/** Scripts for Windows PowerShell 5.1 and later. The user is an administrator. */
export const POWERSHELL_SCRIPTS: ScriptLanguage = {
  scriptDirectory: SCRIPT_DIRECTORY,
  extension: '.ps1',
  command: (path) => `${POWERSHELL} -File ${path}`,
  prepare: PREPARE,
  // The exit code is the last program's. A failing cmdlet ends the script.
  step: (run, environment) => `${BEGINNING}
${assignments(environment)}
Set-Location -LiteralPath ${SCRIPT_DIRECTORY}
$global:LASTEXITCODE = 0
& {
${run}
}
exit $LASTEXITCODE
`,
  clean: (publicKey) => CLEAN + (publicKey === undefined ? '' : removeKey(publicKey)),
  powerOff: `${BEGINNING}${REMOVE_WORK}Stop-Computer -Force\n`,
  sysprep: SYSPREP,
};

function assignments(environment: Readonly<Record<string, string>>): string {
  return Object.entries(environment)
    .map(([name, value]) => `$env:${name} = ${powershellLiteral(value)}`)
    .join('\n');
}

/** Removes only the matching lines, so that the files keep their permissions. */
function removeKey(publicKey: string): string {
  return KEY_FILES.map(
    (path) => `
if (Test-Path -LiteralPath "${path}") {
  $others = @(Get-Content -LiteralPath "${path}" | Where-Object { -not $_.Contains('${publicKey}') })
  Set-Content -LiteralPath "${path}" -Value $others
}
`,
  ).join('');
}
