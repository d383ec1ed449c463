/** Begins a command line that runs Windows PowerShell, for whatever shell. */
export const POWERSHELL = 'powershell -NoLogo -NoProfile -NonInteractive -ExecutionPolicy Bypass';

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
