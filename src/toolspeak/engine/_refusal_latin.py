"""The words of refusals in languages with Latin letters; `_refusal_words` says how to read them."""

ENGLISH = """
let cannot: (i |i'm |i am |and |but |so |or |also )(can't|cannot|can not|unable to|not able to|don't know how to)
let now: (directly |actually |currently |physically |really |simply |just |personally |independently |)
let act: access|browse|open|read|run|execute|search|use|call|retrieve|fetch|visit|interact|connect|look|inspect|check|
  list|download|perform|make|view|invoke|navigate|reach|go|write|edit|modify|create
let to: (to |with |on |at |for |from |through |into |in |up |)(the |any |external |live |arbitrary |system |actual |)
let world: tools|any tool|external tool|(any|external) functions|function calling|tool calling|any (local |)files|
  local files|files (on|in|from|or)|(your|the user's|a user's) (local |own |)(files|file s|filesystem|computer|
  machine|system|device|  disk|hard|folder|director|project|workspace|repo|codebase|terminal|desktop|drive|
  environment|pc|local|server|laptop|
  network|command)|file system|filesystem|internet|the web|web pages|web searches|websites|
  external (web|site|link|url|sys|data|resource|file|serv)|urls|links|online|shell|terminal|commands|code_|scripts|
  programs|real time|live (data|info|web|weather|news)|current (weather|news|data|event)|databases|apis|outside world|
  browser|command line
soft: (i'm |i am |)(so |very |really |terribly |)sorry(,|) (but|however|)|(my |)apologies|
  i apologi(z|s)e( for (the |any |)(inconvenience|confusion)|)|unfortunately|regrettably|i regret( to say|)( that|)|
  sadly|alas|i'm afraid( that|)|i am afraid( that|)|but|however|at the moment|at this time|right now|at present|
  currently|pardon|no,|hi|hello|hey|sorry about that|to be honest|actually|excuse me|oh|hmm|well|thanks|thank you|note
open: i (currently |)(don't|do not) (currently |actually |directly |)(have|possess) (any|access|the|a_|direct|
  internet|web|tool|file|real|live|net|external|cap|shell|term|brows|abil|func|built|such access|permission to (brow|
  acc))|i (can't|cannot|can not|simply can't) (directly|actually|currently|physically|just|personally|{act}|see)|
  i('m| am) (currently |)(unable|not able|not capable|not equipped|not connected|incapable|not designed|not set up)|
  i (currently |)have no|i lack|i('m| am) (just |only |merely |)(a|an) (ai|text|language|large|chat|virtual|
  artificial|llm)|as (an (ai|artificial|llm)|a (language|large|text|chat|virtual))( |,)|
  (since|because|while|although|though) i( |'m)|being an ai|there (are|'re|is) (currently |)no (tool|func|way for me)|
  no (tools|functions) (are|were|have|avail)|it (seems|looks like|appears) (that |)i (don't|do not|have no|can't|
  cannot|lack)|this (chat|environment|session) (does|has)|please (run|exec|paste|copy|open|type|enter|upload|provide|
  share|try running)|(could|can|would) you (please |)(paste|run|copy|upload|exec|share the con|provide the con|open)|
  you('ll| will|) (need|have) to (run|exec|copy|paste|open|do|upload)|run (this|the following|it)|
  (browsing|accessing|executing|running|reading|opening) (the (internet|web)|website|web|code|command|file|local|
  external|your)|my (capabilities|abilities)|you (haven't|have not) (given|provided|granted)|
  i (understand|appreciate|see that|wish|would (love|like|be)|'d (love|like|be))|i'd (love|like|be happy)|i only have|
  i don't (currently |)(support|browse)|i do not (support|browse)|i (never|don't) (run|execute|actually run)|none are
claim: {cannot} {now}(({act}) |)(or |and |)(({act}) |)(or |and |)({act}) {to}({world})
claim: {cannot} {now}(browse|go online|see your (file|local|comp|dir|folder)|see (any |the |)files)
claim: (i am|i'm) (not (currently |)(capable of|designed to|equipped to|set up to|connected to)|
  incapable of) & {world}
claim: (don't|do not) {now}(have|possess) (any |direct |the |a |real time |such |built in |)(access|ability|
  capability|capabilities|means|way|method|connection|feature|permission to (browse|access the))|
  (have|with) no (direct |real |)(access|ability|way|means|capability|connection)|
  lack (the |any |direct |)(abil|acc|cap|means) & {world}
claim: (don't|do not) (currently |)have (any |)(tools|functions) (to|for|that) & access|read|open|view|brows|run|exec|
  search
claim: (don't|do not) (currently |)have (direct |any |an |)(internet|web|file system|filesystem|file|browsing|network|
  shell|terminal|command line|real time|tool|tool calling|function calling|
  online) (access|cap|connec|abilit|data|info|func|brows)
claim: not something i (can|am able|'m able) & access|brows|run|execut|read|open
claim: (you haven't|you have not) (given|provided|granted) & access|tools
claim: (don't|do not) have (a|an) (file system|browser|terminal|shell|internet connection)
claim: have no (internet|web|file|browsing|network|tool) (access|conn|cap)
claim: my (capabilities|abilities) (don't|do not) & {world}
bare: (don't|do not) (currently |actually |)have (any |the |access to (any |the |external |)|)(external |available |
  necessary |special |specific |such |usable |)tools|(have|are|'re) (currently |)no (external |available |usable |
  special |)tools|no (tools|functions) (are |were |have been |)(currently |)(available|provided|given|offered|acces|
  enabled|connected|that i can use)|not (been |)(given|equipped with|provided with) (any |)tools|
  lack (any |the |)tools|tools (aren't|are not) available to me|no access to (any |)(tools|functions)
purpose: tool(s|) (for|that|to|which|capable|with which|needed|available for|in the|on the)|
  functions (named|called|in the|for)
across: run_|exec|type_|enter_ & paste|share|send|post|tell|give|provide|show|report|copy & output|result|content|
  here|back
across: run_|exec|do_ & yourself
across: paste|upload|copy & content of|contents of|text of|its contents
across: paste|upload|copy|share & here_|into (this|the|our) (chat|conversation)|with me
veto: none of (my|the|these|them)|my (available |current |)tools|the (available|provided|current|given|offered) tools|
  tools (i have|at hand|provided|i was given|available to me (do|can|only))|of the tools|a tool (for|that|to|which)|
  let me (read|open|check|run|look|try|use|fetch|search|call|list|start|first|see_|find|take)|
  i('ll| will) (use|call|try|run|read|check|search|start|first|look|fetch)|i (can|could) (use|call) (the|a|my)|
  before i|until (you|i)|yet_|permission denied|access denied|not found|(does not|doesn't|do not|don't) exist|
  no such file|timed out|timeout|(an|the) error (occ|was|is|ret)|an error|failed|returned|missing|not installed|
  at once|at the same time|corrupt|encrypted|because (it|the (file|path|page|server|site|command|tool|connection))|
  status 4|status 5|404|403|not respond|exit code|illegal|harm|weapon|malware|malicious|unethical|hack|consent|
  unauthori|authoriz|someone|other people|another user|exploit|steal|phish|danger|destruct|private (info|data|key)|
  personal data|(commands|code|scripts|programs|functions|links) (that|which|without)
"""

SPANISH = """
let your: (tu|tus|su|sus|vuestro|vuestros) (archivo|fichero|sistema|ordenador|computador|equipo|disco|carpeta|
  directorio|proyecto|repositorio|maquina|dispositivo|terminal|pc|entorno)
let act: acceder|abrir|leer|navegar|ejecutar|correr|buscar|consultar|usar|utilizar|visitar|entrar|conectar|
  interactuar|descargar|llamar|realizar|hacer|revisar|inspeccionar|examinar|explorar|ver (tu|su|los arch)
let world: herramientas|internet|la web|(paginas|sitios) web|enlaces|url|navegador|{your}|
  (archivos|ficheros) (locales|en|de tu|de su|del)|sistema de (archivos|ficheros)|comandos|terminal|consola|codigo_|
  scripts|tiempo real|en linea|extern|la red
soft: lo (siento|lamento)( mucho|)(, pero|)|lamentablemente|desafortunadamente|por desgracia|disculpa|disculpe|
  disculpas|perdon|perdona|perdone|pero|sin embargo|actualmente|en este momento|por el momento|ahora mismo|
  me temo que|no,|hola|desgraciadamente|mis disculpas|lamento( informarte| informarle| decirte|)( que|)|
  la verdad es que
open: (yo |)no (tengo|dispongo|poseo|cuento|soy capaz|estoy|me es posible|hay (herr|ning)|se me)|
  (yo |)no puedo ({act}|direct|ver)|como (una |un |soy |)(ia|modelo|intelig|asistente|chatbot|soy|no tengo|no puedo)|
  soy (un|una|solo|sola|unic|simple|incapaz)|carezco|al ser|dado que (no|soy)|ya que (no|soy)|puesto que (no|soy)|
  mis capacidades|siendo|aunque (no|me)|por favor(,|) (ejec|corr|copi|peg|abr|compart|lanz)|
  (ejecuta|ejecute|corre|ejecutalo) (tu|usted|este|esta|el|la|esto|ese|por)|(puedes|puede|podrias|podria|
  podeis) (ejec|copi|peg|compart|correr|abrir)|tendras que (ejec|copi|peg|abrir|hac)|
  tendra que (ejec|copi|peg|abrir|hac)|necesito que (ejec|peg|copi|compart|me peg|me comp)|debes (ejec|copi)|entiendo|
  comprendo|me (encant|gust)aria|parece que no|te (pido|ruego)
claim: no puedo|no soy capaz de|no estoy (capacitad|en condiciones|disenad)|incapaz de|
  no me es posible & {act} & {world}
claim: no (tengo|dispongo de|poseo|cuento con)|carezco de & acceso|capacidad|posibilidad|forma|manera|medios|conexion|
  habilidad|modo & {world}
claim: no (tengo|dispongo de|cuento con|poseo) (|las |)herramientas (para|que) & leer|abrir|acceder|ejecutar|navegar|
  buscar|consultar
claim: no puedo navegar|no estoy conectad(o|a) a internet|no tengo internet
bare: (no (tengo|dispongo de|poseo|cuento con|hay)|carezco de) (acceso a |)(ninguna |las |ningun tipo de |)herramienta
bare: no se me (han|ha) (dado|proporcionado) & herramienta
purpose: herramienta(s|) (para|que|con|capa|adecuada|en (la|el))
across: ejec|corre|corra|lanza|lance & peg|compart|envi|mand|copi|dime|muestr|indic & salida|resultado|aqui
across: ejec|corre|corra|hazlo|haga & (tu|usted|ti|si) mism
across: peg|copi & contenido|aqui
veto: problema|ningun(a|o) de (mis|las|los)|mis herramientas|las herramientas (disp|que tengo|prop|act)|
  (una|ninguna) herramienta (para|que)|permiso denegado|acceso denegado|no existe|no se (ha |)encontr|error|fallo|
  fallado|devolvio|danado|porque (el|la) |voy a|dejame|usare|utilizare|ilegal|arma|malware|malicios|hack|
  consentimiento|sin autoriz|otra persona|otras personas|de otros|robar|pelig|privad
"""

PORTUGUESE = """
let act: acessar|aceder|abrir|ler_|navegar|executar|rodar|correr|buscar|pesquisar|consultar|usar|utilizar|visitar|
  entrar|conectar|interagir|baixar|chamar|realizar|fazer|explorar|me conectar|ver (seus|os seus|os arq)
let world: ferramentas|internet|a web|na web|(paginas|sites)|links|url|navegador|
  (seu|seus|sua|suas|teu|teus|tua|tuas|do usuario) (arquivo|ficheiro|sistema|computador|maquina|disco|pasta|diretorio|
  projeto|repositorio|dispositivo|terminal|pc|ambiente)|(arquivos|ficheiros) (locais|no|em|do seu)|
  sistema de (arquivos|ficheiros)|comandos|terminal|codigo_|scripts|tempo real|online|extern|rede_
soft: desculpe|desculpa|desculpas|me desculpe|peco desculpa(s|)|infelizmente|lamento|sinto muito|lamentavelmente|mas|
  porem|no entanto|contudo|no momento|atualmente|neste momento|perdao|perdoe me|receio que|ola|oi|por enquanto|
  de momento
open: (eu |)nao (tenho|disponho|possuo|conto|sou capaz|estou|me e possivel|ha (ferr|nenh)|consigo|me foram|foram)|
  (eu |)nao posso ({act}|direta)|como (uma |um |sou |)(ia|modelo|intelig|assistente|chatbot|sou|nao tenho|nao posso)|
  (eu |)sou (um|uma|apenas|so|somente|incapaz)|careco|por ser|sendo|ja que (nao|sou)|uma vez que (nao|sou)|
  minhas capacidades|embora|nenhuma ferramenta (esta|foi|me)|(eu |)nao consigo|
  por favor(,|) (exec|rod|copi|col|abr|compart)|(execute|rode|executa|corra) (voce|este|esta|o|a|isso|esse|tu)|
  (voce |)(pode|poderia|podes) (exec|rod|copi|col|compart)|voce (precisa|tera|deve)|preciso que (voce|exec)|entendo|
  compreendo|eu adoraria|gostaria|parece que nao|sera necessario que voce|teras de
claim: nao (posso|consigo)|nao sou capaz de|nao estou (habilitad|em condic|apto)|incapaz de|
  nao me e possivel & {act} & {world}
claim: nao (tenho|disponho de|possuo|conto com)|careco de & acesso|capacidade|possibilidade|forma|maneira|meios|
  conexao|habilidade|como|ligacao & {world}
claim: nao (tenho|disponho de|conto com|possuo) (as |)ferramentas (disponiveis |)(para|que) & ler|abrir|acessar|
  aceder|executar|navegar|buscar|pesquisar
claim: nao (posso|consigo) navegar|nao estou (conectad|ligad)o a internet|nao tenho internet
bare: (nao (tenho|disponho de|possuo|conto com|ha)|careco de) (acesso a |)(nenhuma |as |quaisquer |)ferramenta
bare: nao (me |)foram (dadas|fornecidas|disponib) & ferramenta|nenhuma ferramenta (esta disponivel|me foi|foi)
purpose: ferramenta(s|) (disponiveis |)(para|que|com|capa|adequada|na pasta|no dir)
across: exec|rode|roda|corra & col|cole|compart|envi|mand|copi|diga|mostr|inform & saida|resultado|aqui
across: exec|rode|corra|faca & voce mesm|por conta propria|tu mesm
across: cole|colar|copi & conteudo|aqui
veto: problema|nenhuma (das|de minhas)|minhas ferramentas|as ferramentas (disp|que tenho|forn|atuais)|
  (uma|nenhuma) ferramenta (para|que)|permissao negada|acesso negado|nao existe|nao (foi |)encontr|erro|falh|retornou|
  corromp|porque (o|a) |vou (usar|ler|exec|tent|ver)|deixe me|usarei|ilegal|arma|malware|malicios|hack|consentimento|
  sem autoriz|outra pessoa|outras pessoas|de outr|roubar|perig|privad
"""

ITALIAN = """
let act: accedere|aprire|leggere|navigare|eseguire|lanciare|cercare|effettuare|consultare|usare|utilizzare|visitare|
  connettermi|collegarmi|interagire|scaricare|chiamare|fare ricerche|esplorare|vedere i (tuoi|file)|visualizzare
let world: strumenti|tool_|internet|il web|sul web|(pagine|siti) web|siti_|link|url|browser|
  (tuo|tuoi|tua|tue|suo|suoi|sua|sue|vostri) (file|sistema|computer|macchina|disco|cartell|directory|progetto|
  repository|dispositivo|terminale|pc|ambiente)|file (locali|sul|nel|del tuo)|file system|filesystem|comandi|
  terminale|codice_|script|tempo reale|online|estern|rete_
soft: mi (dispiace|spiace)( molto|)|spiacente|sono spiacente|purtroppo|scusa|scusami|scusi|mi scuso|chiedo scusa|
  sfortunatamente|ma_|tuttavia|pero|al momento|attualmente|per il momento|in questo momento|temo (che|di)|no,|ciao|
  perdonami
open: (io |)non (ho (acc|alcun|ness|strum|la|una|modo|un modo|i mezzi|attual|dirett|conn|al mom|a disp|il|gli|capac)|
  dispongo|possiedo|sono|mi e possibile|ci sono (strum|alc)|mi sono)|(io |)non posso ({act}|dirett|vedere)|
  (io |)non riesco ad acc|(come|in quanto|essendo) (un |una |)(ia|ai|modello|intelli|assistente|chatbot|semplice|
  solo)|sono (solo|soltanto|un|una|semplic|incapace|sprovvist)|poiche (non|sono)|dato che (non|sono)|le mie capacita|
  nessuno strumento (e|mi)|sebbene|visto che (non|sono)|(per favore|per piacere|ti prego di|la prego di|
  ti chiedo di)(,|) |(esegui|lancia|esegua) (tu|il|la|questo|lo|questi)|eseguilo|
  (puoi|potresti|potrebbe|puo) (eseg|inco|copi|cond|lanc)|dovrai|dovresti eseg|devi (eseg|copi|inco)|capisco|
  mi piacerebbe|sembra che (io |)non|ho bisogno che
claim: non posso|non sono in grado di|non sono capace di|incapace di|non mi e possibile|
  non riesco ad & {act} & {world}
claim: non (ho|dispongo|possiedo)|sprovvist & accesso|capacita|possibilita|modo|maniera|mezzi|connessione|
  funzionalita & {world}
claim: non (ho|dispongo di|possiedo) (gli |)strumenti (per|che) & leggere|aprire|accedere|eseguire|navigare|cercare
claim: non (posso|sono in grado di) navigare|non sono (conness|collegat)o a internet
bare: non (ho|dispongo di|possiedo|ci sono) (accesso a(gli|d alcuno|d alcun|) |)(alcuno |alcun |nessuno |gli |
  a disposizione |attualmente |)strument
bare: non mi sono stati (dati|forniti) & strument|nessuno strumento (e disponibile|mi e)|sprovvisto di strumenti
purpose: strument(o|i) (per|che|con|adatt|capac|in grado|nell|nel_|sul)
across: eseg|lanc & incoll|condiv|invi|mand|copi|dimmi|mostr|riport & output|risultat|qui_
across: eseg|lanc|fallo & tu stesso|da solo|lei stesso|autonomamente
across: incoll|copi & contenuto|qui_
veto: problem|nessuno (degli|dei miei)|i miei strumenti|gli strumenti (disp|che ho|forn|attuali)|
  (uno|nessuno|alcuno) strumento (per|che)|permesso negato|accesso negato|non esiste|non (e stato |)trovat|errore|
  fallit|restitui|danneggiat|perche (il|la) |usero|lasciami|provo a|vado a|illegal|arma_|armi|malware|malevol|hack|
  consenso|senza autoriz|altre persone|altra persona|di altri|altrui|rubare|pericol|privat
"""

FRENCH = """
let act: (d'|)(acceder|ouvrir|executer|effectuer|utiliser|interagir|appeler|explorer)|lire|consulter|naviguer|lancer|
  rechercher|me connecter|parcourir|visiter|faire|visualiser|voir (vos|tes)|telecharger
let world: outils|aucun outil|d'outil|internet|le web|sur le web|(pages|sites) web|sites_|url|liens|navigateur|
  (vos|votre|tes|ton|de l'utilisateur) (fichier|systeme|ordinateur|machine|disque|dossier|repertoire|projet|depot|
  appareil|terminal|environnement|pc)|fichiers (sur|locaux|de votre|de ton)|systeme de fichiers|commandes|terminal|
  shell|de code|du code|scripts|temps reel|en ligne|extern|reseau
soft: (je suis |)(vraiment |sincerement |)desole(e|)|malheureusement|je regrette|excusez moi|excuse moi|pardon|
  (toutes |)mes excuses|mais|cependant|toutefois|actuellement|pour (le moment|l'instant)|helas|(je suis |)navre(e|)|
  bonjour|je m'excuse|je crains que|non,|je vous prie de m'excuser
open: je n'ai (pas (acc|d'|de |la|les|actu|dir)|aucun|actuellement|ni_|malheur|pour|dir)|
  je ne (dispose|suis pas|possede|peux (pas|ni|malh|actu|dir))|il (m'est|ne m'est|n'y a (aucun|pas d'outil))|
  je suis (un|une|seulement|uniq|simpl|incap|dans l'inc|juste)|je n'ai malh|je ne suis (qu|mal)|en tant qu|
  etant (un|une|donne)|comme je (ne|n'|suis)|puisque je|n'ayant|ne disposant|mes capacites|aucun outil (n'est|ne m|n)|
  bien que je|(pouvez vous|pourriez vous|peux tu|pourrais tu) (exec|copi|coll|lanc|part|me (coll|cop|part))|
  (executez|lancez|execute|lance) |vous (devez|devrez|pouvez|devriez) (exec|lanc|copi|coll)|
  tu (dois|devras|peux) (exec|lanc|copi|coll)|je (comprends|serais)|je vous (invite|prie|sugg)|j'aimerais|
  il semble que je n|(s'il vous plait|s'il te plait)|(veuillez|merci de|merci d')(| )(exec|copi|coll|lanc|ouvr|part|
  four|bien)
claim: je ne peux (pas|ni|malh|actu)|ne suis pas (en mesure|capable|habilite)|incapable d|dans l'incapacite|
  (m'|)est impossible|ne m'est pas possible|et ne peux (pas|ni) & {act} & {world}
claim: je n'ai|je ne (dispose|possede)|n'ayant|n'ai (pas|aucun) & acces|capacite|possibilite|moyen|connexion & {world}
claim: (n'ai pas|ne dispose pas|ne possede pas) (d'|des |les )outils (pour|me permettant|permettant) & lire|ouvrir|
  acceder|executer|naviguer|rechercher|consulter
claim: je ne peux pas naviguer|ne suis pas connecte a internet
bare: je n'ai|je ne (dispose|possede)|n'ayant|il n'y a & (aucun|pas de|pas les|pas acces a des|pas acces aux|
  pas acces a vos|d'aucun|acces a aucun) outil|pas d'outil
bare: aucun outil (n'est|ne m'est|ne m'a|n'a ete)
purpose: (d'|)outil(s|) (pour|qui|permettant|capable|me permettant|afin|adapte|dans (le|la))
across: exec|lanc & coll|partag|envo|copi|dire|dites|montr|transm|communiq|donn & sortie|resultat|ici
across: exec|lanc & (vous|toi) meme|de votre cote
across: coll|copi & contenu|ici
veto: probleme|aucun (des|de mes|de ces)|mes outils|les outils (disp|dont|four|actu|mis)|un outil (pour|qui|permet)|
  permission refusee|acces refuse|n'existe|introuvable|pas (ete |)trouve|erreur|echou|echec|renvoye|retourne|corrompu|
  parce que (le|la) |je vais|laissez moi|j'utiliserai|illegal|arme|malveillan|pirat|consentement|sans autoris|autrui|
  d'autres personnes|quelqu'un|voler_|danger|privees|(commandes|outils) (qui|sans|destruct)
"""

GERMAN = """
let your: (ihre|ihren|ihrem|ihrer|ihr|deine|deinen|deinem|deiner|dein) (lokal|)
let act: zugreifen|zuzugreifen|zugriff|offnen|lesen|ausfuhren|auszufuhren|aufzurufen|abzurufen|browsen|surfen|suchen|
  aufrufen|abrufen|nutzen|verwenden|einsehen|starten|durchsuchen|benutzen|verbinden|moglichkeit|fahigkeit|verbindung|
  zugang|verbunden
let world: werkzeug|tools|internet|web_|webseiten|websites|url|links_|online|dateisystem|
  {your}(datei|computer|rechner|system|gerat|projekt|ordner|verzeichnis|festplatte|lokal|terminal|pc|umgebung|
  maschine|laufwerk)|dateien (auf|offnen|lesen|zugreifen|direkt|einsehen|oder)|auf dateien|lokale(n|) dateien|befehle|
  kommandos|terminal|shell|code_|skripte|echtzeit|extern|browser
soft: leider|(es |)tut mir (sehr |wirklich |)leid(, aber|)|entschuldigung|entschuldige|entschuldigen sie|verzeihung|
  bedauerlicherweise|ich bedaure|aber|jedoch|allerdings|derzeit|momentan|aktuell|im moment|zurzeit|sorry|nein,|hallo
open: (ich habe|habe ich) (derzeit |momentan |aktuell |leider |hier |im moment |selbst |als ki |zurzeit |)(kein|
  nicht (die|das)|weder)|(ich kann|kann ich) (leider|nicht|kein|ihre|deine|auf|das int|dateien|im int|hier|selbst|
  von hier|derzeit|momentan|als|bef|direkt|weder|aktuell|die datei|zur)|kann (leider|nicht|kein)|
  ich bin (nur|ein|lediglich|nicht (in|fah|mit|imst)|als|leider|bloss)|bin ich (nicht|leider|nur|ein)|
  als (ki|sprach|kunst|ai|rein|text|gross|assist|chat)|da ich|weil ich|mir (steh|fehl|ist|sind|wurd|lieg)|
  (ich |)(verfuge|besitze) (ich |)(derzeit |leider |)(uber kein|kein|nicht)|es (stehen|steht|gibt|sind|ist) (mir |
  hier |leider |)(kein|nicht)|(stehen|steht|ist|sind) mir|ohne zugriff|meine fahigkeiten|keine (werkzeuge|tools)|
  bitte (fuhr|kopier|fug|teil|offn|gib|geb|start|post|schick|send|lass)|(konnten|konnen) sie (bitte |mir |den |die |
  das )|(konntest|kannst) du (bitte |mir |den |die |das )|sie (mussen|mussten) |du (musst|musstest) |
  (fuhren sie|fuhre) (den|dies|das|bitte|die|folg)|ich verstehe|gern(e|) wurde ich|ich wurde gern|obwohl ich
claim: ich kann|kann ich|und kann|ich habe|habe ich|ich bin|bin ich|da ich|weil ich|mir|verfuge & nicht|kein|
  weder & {act} & {world}
claim: kein(e|en) (internet|web|datei|online)(zugriff|zugang|verbindung) & ich|mir|habe
claim: keine (werkzeuge|tools) (zum|um|fur) & lesen|offnen|ausfuhr|zugreif|such|durchsuch
claim: ich kann nicht (im (internet|web|netz)|online)|kann ich nicht (im (internet|web|netz)|online)
bare: ich|mir|es_ & keine(rlei|n|) (zugriff auf (die |irgendwelche |externe |)|verfugbaren |externen |
  passenden |)(werkzeug|tool)|kein(|e) (werkzeug|tool)
bare: uber keine(rlei|) (werkzeug|tool)|keine (werkzeuge|tools) (zur verf|verf)
purpose: (werkzeug|werkzeuge|tool|tools) (fur|zum|um|die|das|mit dem|mit denen|womit|im|in der)
across: nicht in der lage|keine (moglichkeit|fahigkeit)|nicht (moglich|fahig) & {act} & {world}
across: fuhr|ausfuhren|start|fuhre|geben|gib & teil|schick|send|kopier|post|zeig|fug|einfug|nenn & ausgabe|ergebnis|
  hier
across: fuhr|ausfuhren|start|mach & selbst
across: kopier|fug|einfug|post & inhalt|hier
veto: keine probleme|kein problem|keines (meiner|der)|keins (meiner|der)|meine (werkzeuge|tools)|
  meinen (werkzeugen|tools)|die (verfugbaren|vorhandenen) (werkzeuge|tools)|den (verfugbaren|vorhandenen)|
  (kein|ein) (werkzeug|tool) (fur|zum|das|um)|zugriff verweigert|existiert|nicht (gefunden|vorhanden)|fehler|
  fehlgeschlagen|scheiter|zuruckgegeben|beschadigt|gefunden|weil (die|das|der) |ich werde|lass mich|lassen sie mich|
  ich verwende|ich nutze|illegal|waffe|schadlich|schadsoftware|malware|hack|einwilligung|ohne erlaubnis|unbefugt|
  fremde|anderer|stehlen|gefahr|privat
"""

TURKISH = """
soft: üzgünüm|maalesef|ne yazık ki|özür dilerim|kusura bakma(yın|)|affedersiniz|ama|ancak|fakat|şu anda|şu an|hayır,|
  merhaba|şimdilik
open: (benim |)(herhangi bir |hiçbir |kullanabileceğim |)(araca|araç|aracım|araçlar)|bir (yapay|dil|ai)|yapay zeka|
  ben (bir|sadece|yalnızca|internet|dosya)|dosya(lar|larına| sistem|sistem|larınıza|nıza)|internet(e|te|)|bilgisayar|
  sistem(iniz|e)|komut|web|gerçek zamanlı|harici|lütfen|komutu|dil modeli|elimde|kod
claim: erişimim yok|erişemiyorum|erişemem|erişim(im| iznim|) (yok|bulunmuyor|bulunmamakta)|bağlanamıyorum|bağlanamam|
  çalıştıramıyorum|çalıştıramam|açamıyorum|açamam|okuyamıyorum|okuyamam|gezinemiyorum|gezinemem|kullanamıyorum|
  kullanamam|göremiyorum|göremem|arama yapam|yürütemem|yürütemiyorum|yeteneğim yok|imkanım yok & internet|web|
  dosya sistem|dosyalarına|dosyalarınıza|dosyalarını|dosyanıza|bilgisayar|sistemini|sisteminiz|komut|kod_|kodu|araç|
  araçlar|gerçek zamanlı|harici|terminal|tarayıcı|bağlantı|çevrimiçi
bare: (araç|aracım|araçlarım|araca erişimim|araçlara erişimim) (yok|bulunmuyor|mevcut değil)|araç(ım|larım|) yok|
  (hiçbir|herhangi bir) (araca|aracım|araç)
purpose: için (bir |)(araç|aracım)|(yapan|gönderen|değiştiren|edebilecek|ebilecek|abilecek) (bir |)ara(ç|c)
across: çalıştır & yapıştır|paylaş|gönder|kopyala|ilet & çıktı|sonu|buraya
across: kendiniz|kendin & çalıştır
veto: araçlarımdan|araçlarımın|mevcut araçlar|araçların hiç|hiçbiri|reddedildi|bulunamadı|hata|başarısız|
  mevcut değil:|silah|yasa dışı|yasadışı|zararlı|hack|başkasının|başkalarının|izinsiz
"""  # noqa: RUF001 - its own letters

POLISH = """
soft: przepraszam|niestety|przykro mi|wybacz|proszę o wybaczenie|ale|jednak|obecnie|w tej chwili|aktualnie|nie,|cześć
open: (ja |)nie (mam|posiadam|dysponuję|mogę (uzy|prze|otw|odc|czy|uru|wyk|kor|wysz|prz|poł|łącz|skor|bez|samo|zaj|
  się|wej|wyw|uży)|jestem (w stanie|poł|podł)|potrafię|mam dostępu)|jako (model|ai|sztucz|asyst|duży|chat)|
  jestem (tylko|jedynie|model|sztucz|ai|asyst)|ponieważ (nie|jestem)|proszę|(uruchom|wykonaj) |
  czy (możesz|mógłbyś|może pan) (wkl|uru|skop)|brak(uje|) (mi |)(narz|dost)|nie są mi|nie udostępniono mi|rozumiem
claim: nie mogę|nie jestem w stanie|nie potrafię|nie mam możliwości & uzyska|przeglą|otwier|otworzy|odczyt|czyta|
  przeczyta|uruch|wykon|korzysta|skorzysta|wyszuk|łączy|połączy|użyć|używa|wywoł|wejść & narzędzi|internet|sieci_|
  stron|plik(ów|i|ami) na|(twoje|twoich|twoim|twój|twojego|państwa)|systemu plików|poleceń|komend|kodu|terminal|
  czasie rzeczywistym|zewnętrzn|link
claim: nie (mam|posiadam)|brak & dostęp|możliwości|połączenia|zdolności & narzędzi|internet|sieci_|stron|
  (twoje|twoich|twoim|twój|twojego|państwa)|systemu plików|plików|poleceń|komend|terminal|rzeczywistym|zewnętrzn
bare: (nie (mam|posiadam|dysponuję)|brak mi|brakuje mi) (dostępu do |)(żadn(ych|ymi) |dostępnych |)narzędzi|
  nie udostępniono mi & narzędzi
purpose: narzędzi(a|) (do|któr|, któr|pozwal|umożl)
across: uruch|wykona & wkle|skop|prześ|pode|udost|wyśl & wynik|tutaj|tu_|wyjście
across: uruch|wykona & samodzielnie|sam_|u siebie
across: wkle|skop & zawartość|treść
veto: żadne z|żaden z|moje narzędzia|moich narzędzi|dostępne narzędzia|z dostępnych|odmow|nie istnieje|nie znalez|
  błąd|błęd|nie powiodł|zwróci|użyję|sprawdzę|pozwól|broni|nielegal|złośliw|włam|cudz|innych osób|bez zgody|szkodliw
"""

DUTCH = """
soft: helaas|sorry|het spijt me( zeer|)|excuses|mijn excuses|maar|echter|op dit moment|momenteel|nee,|hallo|
  jammer genoeg|pardon
open: (ik heb|heb ik) (helaas |momenteel |op dit moment |hier |)(geen|niet de)|
  (ik kan|kan ik) (helaas|niet|geen|je|uw|op het|het int|best|momenteel|op dit|hier|zelf)|
  als (ai|taalmodel|kunst|een (ai|taal|kunst)|groot|tekst)|ik ben (slechts|maar|een|niet|alleen|helaas)|
  ben ik (niet|een)|omdat ik|aangezien ik|er zijn geen (tools|hulp)|mij (zijn|staan)|ik beschik|beschik ik|
  voer (dit|het|de|deze)|kun je|kunt u|(je|u) (moet|zult|zal)|gelieve|wil je|ik begrijp|ik zou graag|kan (niet|geen)
claim: ik kan|kan ik|en kan|ik ben|ben ik|ik heb|heb ik|ik beschik & niet|geen & toegang|openen|lezen|uitvoeren|
  browsen|surfen|zoeken|gebruiken|bekijken|verbinding|verbonden|mogelijkheid|inzien|opzoeken|benaderen & tools|
  hulpmiddelen|internet|web_|websites|webpagina|(je|jouw|uw) (lokale |)(bestand|computer|systeem|apparaat|project|map|
  machine|schijf|terminal|pc)|bestandssysteem|bestanden op|lokale bestanden|commando|opdrachten|code_|scripts|
  realtime|real time|extern|terminal|links|online
bare: geen (toegang tot |beschikbare |externe |)(tools|hulpmiddelen|gereedschap)
purpose: (tools|tool|hulpmiddelen|hulpmiddel|gereedschap) (om|voor|die|dat|waarmee)
across: voer|uitvoer|draai & plak|deel|stuur|kopieer|geef & uitvoer|resultaat|hier|output
across: voer|uitvoeren|draai & zelf_
across: plak|kopieer & inhoud|hier
veto: geen van (mijn|de)|mijn (tools|hulpmiddelen)|de beschikbare|geen (tool|hulpmiddel) (om|voor|die|dat)|geweigerd|
  bestaat niet|niet gevonden|fout|mislukt|omdat (het|de) |laat me|ik ga|ik gebruik|wapen|illegaal|schadelijk|hack|
  anderen|iemand|zonder toestemming
"""
