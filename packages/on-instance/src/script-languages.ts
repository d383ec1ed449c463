import { POSIX_SCRIPTS } from './posix-scripts.ts';
import { POWERSHELL_SCRIPTS } from './powershell-scripts.ts';
import type { ScriptLanguage } from './script-language.ts';
import type { OnInstance } from './settings.ts';

/** Scripts by the setting `shell`. */
export const SCRIPT_LANGUAGES: Readonly<Record<OnInstance['shell'], ScriptLanguage>> = {
  posix: POSIX_SCRIPTS,
  powershell: POWERSHELL_SCRIPTS,
};
