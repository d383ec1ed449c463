import { createHash } from 'node:crypto';
import { piecesOf } from '../pieces-of.ts';
import { powershellCommand } from '../powershell.ts';
import type { RemoteFile } from '../remote-shell.ts';

/** Bytes in a line, a multiple of 3. Encoded twice it still is in the 150 KiB that old services take at most. */
const PIECE_LENGTH = 60 * 1024;

/**
 * Reads lines: `>` and the path of a file, in base64, then what the file holds, in base64. Ends with a line for each
 * file, its SHA-256.
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

/** The command line that takes an {@link Upload} for its input. */
export const PUT_COMMAND: string = powershellCommand(SCRIPT);

/** Files on their way to a machine. */
export class Upload {
  readonly #files: readonly RemoteFile[];
  readonly #digests: string[] = [];

  constructor(files: readonly RemoteFile[]) {
    this.#files = files;
  }

  /** What is sent, a line or two at a time. */
  async *pieces(): AsyncGenerator<Buffer> {
    for (const { path, content } of this.#files) {
      const hash = createHash('sha256');
      let begin = `>${Buffer.from(path).toString('base64')}\r\n`;
      for await (const piece of piecesOf(content, PIECE_LENGTH)) {
        hash.update(piece);
        yield Buffer.from(`${begin}${piece.toString('base64')}\r\n`);
        begin = '';
      }
      if (begin !== '') yield Buffer.from(begin);
      this.#digests.push(hash.digest('hex'));
    }
  }

  /** Whether the machine says that it has just what was sent. */
  isConfirmedBy(lines: readonly string[]): boolean {
    return lines.join(' ').toLowerCase() === this.#digests.join(' ');
  }
}
