import { codeBlocks, readPage } from './markdown.ts';

/** Returns the README's commands that install Debian packages, Node.js, npm and nodepool-builder. */
export async function readmeInstallation(): Promise<string> {
  const [install = ''] = codeBlocks(await readPage('README.md'), 'sh');
  return install.slice(0, install.indexOf('cd "$(npm root'));
}

/** Returns the Debian packages that the README installs, which is the project's only list. */
export async function readmePackages(): Promise<readonly string[]> {
  return installedBy(await readmeInstallation());
}

/** Returns the Debian packages that a script installs with apt-get. */
export function installedBy(script: string): readonly string[] {
  const [, list = ''] = /apt-get install --yes --no-install-recommends ((?:.*\\\n)*.*)/.exec(script) ?? [];
  const [packages = ''] = list.split('&&');
  return packages.split(/[\s\\]+/).filter((name) => name !== '');
}
