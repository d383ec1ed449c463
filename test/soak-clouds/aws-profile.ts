import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Credentials in a file of the AWS command line. */
export interface AwsProfile {
  /** Keys of an entry of `providers`. */
  readonly settings: Readonly<Record<string, string>>;
  remove(): Promise<void>;
}

export async function writeProfile(accessKeyId: string, secretAccessKey: string): Promise<AwsProfile> {
  const directory = await mkdtemp(join(tmpdir(), 'nodepool-soak-aws-'));
  const file = join(directory, 'credentials');
  const lines = [
    '[soak]',
    `aws_access_key_id = ${accessKeyId}`,
    `aws_secret_access_key = ${secretAccessKey}`,
    '',
  ];
  await writeFile(file, lines.join('\n'));
  return {
    settings: { 'shared-credentials-file': file, 'profile-name': 'soak' },
    remove: () => rm(directory, { recursive: true, force: true }),
  };
}
