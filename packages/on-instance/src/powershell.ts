/** First part of a command line that runs Windows PowerShell, for any shell. */
export const POWERSHELL = 'powershell -NoLogo -NoProfile -NonInteractive -ExecutionPolicy Bypass';

/** Command line, for any shell, that runs a short script without a file. `cmd.exe` accepts 8,191 characters. */
export function powershellCommand(script: string): string {
  const encoded = Buffer.from(script, 'utf16le').toString('base64');
  // Without -OutputFormat errors are written as XML, for another PowerShell.
  return `${POWERSHELL} -OutputFormat Text -EncodedCommand ${encoded}`;
}

/** Quotes any text as a PowerShell string: typographic quotes also end a string there. */
export function powershellLiteral(text: string): string {
  return `'${text.replaceAll(/['\u2018-\u201B]/g, '$&$&')}'`;
}
