# Davidson's model of ties by psychotools, for the tests, from the files in data/ alone.
#
# Usage, from the top of the repository:
#   Rscript tests/reference/davidson_reference.R > tests/reference/davidson.json

suppressPackageStartupMessages(library("psychotools"))

# Rows of a paircomp object are respondents, its columns the pairs (1, 2), (1, 3), (2, 3), ...
read_survey <- function(file, items) {
  rows <- read.csv(file.path("data", file), na.strings = "")
  people <- unique(rows$respondent)
  pairs <- which(upper.tri(diag(length(items))), arr.ind = TRUE)
  answers <- matrix(NA_integer_, length(people), nrow(pairs))
  first <- match(rows$item1, items)
  second <- match(rows$item2, items)
  turned <- ifelse(first < second, 1L, -1L)
  column <- match(
    paste(pmin(first, second), pmax(first, second)),
    paste(pairs[, 1], pairs[, 2])
  )
  answers[cbind(match(rows$respondent, people), column)] <- turned * as.integer(rows$outcome)
  paircomp(answers, labels = items, mscale = -1:1)
}

reference <- function(file, items) {
  fit <- btmodel(
    read_survey(file, items),
    type = "loglin", undecided = TRUE, ref = items[1],
    epsilon = 1e-15, maxit = 100
  )
  worths <- itempar(fit, ref = seq_along(items), log = TRUE, vcov = FALSE)
  # win, tie and loss are as e^(d / 2) : e^undecided : e^(-d / 2)
  undecided <- unname(coef(fit, ref = FALSE)["(undecided)"])
  list(
    params = as.list(setNames(as.numeric(worths), items)),
    undecided = undecided,
    loglik = as.numeric(logLik(fit))
  )
}

cat(jsonlite::toJSON(
  list(
    meta = list(
      made_by = "tests/reference/davidson_reference.R",
      R = as.character(getRversion()),
      psychotools = as.character(packageVersion("psychotools")),
      call = "btmodel(type = 'loglin', undecided = TRUE)"
    ),
    university = reference(
      "university.csv",
      c("London", "Paris", "Milano", "StGallen", "Barcelona", "Stockholm")
    ),
    immigration = reference(
      "immigration.csv",
      c("crimRate", "position", "socBurd", "culture")
    )
  ),
  auto_unbox = TRUE, digits = NA, pretty = TRUE
), "\n", sep = "")
