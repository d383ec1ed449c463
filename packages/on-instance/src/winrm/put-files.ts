import { createHash } from 'node:crypto';
import { powershellCommand } from '../powershell-scripts.ts';
import { piecesOf, type RemoteFile } from '../remote-shell.ts';

/** Bytes per line, a multiple of 3. Encoded twice, a line fits in 150 KiB, the limit of old services. */
const PIECE_LENGTH = 60 * 1024;

/**
 * Script that reads lines: `>` and the path of a file in base64, then its content in base64. At the end it prints the
 * SHA-256 of each file on a line.
 */
const SCRIPT = `begin {
  $ErrorActionPreference = 'Stop'
  $ProgressPreference = 'SilentlyContinue'
  $paths = @()
  $file = $null
}
process {
  $line = [string]$_
  if ($line.StartsWith('>')) {
    if ($file) { $file.Close() }
    $name = [Text.Encoding]::UTF8.GetString([Convert]::FromBase64String($line.Substring(1)))
    $path = Join-Path (Get-Location).ProviderPath $name
    $null = [IO.Directory]::CreateDirectory([IO.Path]::GetDirectoryName($path))
    $file = [IO.File]::Create($path)
    $paths += $path
  } elseif ($line) {
    $bytes = [Convert]::FromBase64String($line)
    $file.Write($bytes, 0, $bytes.Length)
  }
}
end {
  if ($file) { $file.Close() }
  foreach ($path in $paths) { (Get-FileHash -Algorithm SHA256 -LiteralPath $path).Hash }
}
`;

/** Command line that reads the input of {@link uploadOf}. */
export const PUT_COMMAND: string = powershellCommand(SCRIPT);

/**
 * Yields the input for some files, one or two lines at a time.
 *
 * @param digests receives the SHA-256 of each file, in hexadecimal
 */
export async function* uploadOf(files: readonly RemoteFile[], digests: string[]): AsyncGenerator<Buffer> {
  for (const { path, content } of files) {
    const hash = createHash('sha256');
    let begin = `>${Buffer.from(path).toString('base64')}\r\n`;
    for await (const piece of piecesOf(content, PIECE_LENGTH)) {
      hash.update(piece);
      yield Buffer.from(`${begin}${piece.toString('base64')}\r\n`);
      begin = '';
    }
    if (begin !== '') yield Buffer.from(begin);
    digests.push(hash.digest('hex'));
  }
}
